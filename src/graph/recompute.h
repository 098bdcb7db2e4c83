// Trades time for memory: what lies inside a segment is computed again for the backward pass instead of being kept.
#pragma once

#include <unordered_map>

#include "norma/graph/graph.h"

namespace norma {

// Groups `every` consecutive segments; between forward and backward only values that cross a group border stay alive.
void recompute_segments(Graph& graph, int every);

// Within each segment but the last: what an op makes cheaply, for its size, from values that stay anyway is made again
// for the backward pass. The op has the same inputs, so the gradients have the same bits.
void recompute_cheap_values(Graph& graph);

// A second edition of a value, called "x~" and entered into `editions` by the first.
int add_edition(Graph& graph, int id, std::unordered_map<int, int>& editions);

}  // namespace norma
