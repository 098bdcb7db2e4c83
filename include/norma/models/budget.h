// What a scheme costs in parameters and operations, read off a traced model.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "norma/models/model.h"
#include "norma/models/stack.h"

namespace norma {

struct Budget {
  std::int64_t norm_instances = 0;
  std::int64_t norm_parameters = 0;
  std::int64_t stack_parameters = 0;  // of all layers and final formulas, norms included; no embeddings, no head
  std::int64_t parameters = 0;        // of everything
  std::map<std::string, std::int64_t> by_role = {};  // see ParameterSpec::role
  double flops = 0;                                  // of a whole model's training step, see traced_flops
};

// Of one stack of the given width. Throws Error for a scheme that a stack cannot build.
Budget stack_budget(const Scheme& scheme, const StackConfig& config, std::int64_t width);

// Of a whole model, and of one that is traced already.
Budget model_budget(const ModelConfig& config);
Budget model_budget(Graph& graph, const Model& model);

// Depths up to the last of these are traced. What is counted at all of them is continued to any depth as a polynomial
// of degree two, which is exact where layers are alike, and where every layer reads all that are below.
inline constexpr std::array<std::int64_t, 3> kTracedDepths = {256, 512, 1024};
double continued(const std::array<double, 3>& at_traced_depths, std::int64_t depth);
// The same of whole budgets.
Budget continued(const std::array<Budget, 3>& at_traced_depths, std::int64_t depth);

}  // namespace norma
