// What a scheme costs in parameters and operations, read off a traced model.
#pragma once

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

}  // namespace norma
