// One node of a graph as a program of its own: how a backward kernel is timed without its forward.
#pragma once

#include <string_view>

#include "norma/device/session.h"
#include "norma/graph/graph.h"

namespace norma::bench {

struct Isolated {
  std::shared_ptr<const Plan> plan;
  Cost cost;
};

// The first node of `graph` whose op has this name, with its inputs as inputs of the new plan. Outputs that nothing in
// the graph reads are dropped.
Isolated isolate(const Graph& graph, std::string_view op_name);

// Small normal numbers in every floating-point input; integers stay zero.
void fill_inputs(Session& session);

}  // namespace norma::bench
