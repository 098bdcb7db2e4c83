// Trades time for memory: what lies inside a segment is computed again for the backward pass instead of being kept.
#pragma once

#include "norma/graph/graph.h"

namespace norma {

// Groups `every` consecutive segments; between forward and backward only values that cross a group border stay alive.
void recompute_segments(Graph& graph, int every);

}  // namespace norma
