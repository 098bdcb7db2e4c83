// The order in which nodes run: what nobody reads is dropped, updates of persistent values come as soon as the old
// value has been read for the last time.
#pragma once

#include <vector>

#include "norma/graph/plan.h"

namespace norma {

void schedule(Graph& graph);

// By node: whether an update or an output needs it, with or without the outputs that are only watched.
std::vector<bool> needed_nodes(const Graph& graph, Watching watching);
// Which values they read, or are outputs.
std::vector<bool> needed_values(const Graph& graph, Watching watching);

// The value whose memory a value is, following views to their base.
std::vector<int> view_bases(const Graph& graph);

}  // namespace norma
