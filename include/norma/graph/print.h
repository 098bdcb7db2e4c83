// A graph for people: as text, as Graphviz dot, and as a drawing that needs nothing else to be viewed.
#pragma once

#include <string>

#include "norma/graph/graph.h"

namespace norma {

struct PrintOptions {
  bool backward = true;  // also what differentiation appended
};

// One line per node, `output type = op(attributes) inputs`, grouped by scope.
std::string print_text(const Graph& graph, const PrintOptions& options = {});

// One box per node, one cluster per scope; `dot -Tpdf` draws it.
std::string print_dot(const Graph& graph, const PrintOptions& options = {});

// A layered drawing from top to bottom, light or dark as the viewer prefers. Parameters, states and constants are
// written into the boxes that read them; an edge over many layers is written as a name on both sides.
std::string print_svg(const Graph& graph, const PrintOptions& options = {});

}  // namespace norma
