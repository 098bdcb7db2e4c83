// Plans for the CPU as they were traced: what is tested is not fused into something else.
#pragma once

#include <memory>

#include "norma/backends/cpu.h"
#include "norma/graph/plan.h"

namespace norma::test {

inline std::shared_ptr<const Plan> plain_plan(Graph& graph, CompileOptions options = {},
                                              const Backend& backend = cpu_backend()) {
  if (!options.rewrites) options.rewrites.emplace();
  return compile(graph, backend, options);
}

}  // namespace norma::test
