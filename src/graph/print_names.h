// How the printers call things, so that text, dot and drawing agree.
#pragma once

#include <string>

#include "norma/graph/graph.h"

namespace norma {

// A computed value without its scope ("tanh#12"), a fill as its number ("0.5"), anything else by its full name.
std::string short_name(const Graph& graph, int value);

// "sum_to(shape=[1])", or "tanh" for an op without attributes.
std::string op_label(const Node& node);

// "layers.0" or "layers.0, backward"; "" for the top.
std::string group_label(const Node& node);

}  // namespace norma
