// What a scheme costs in parameters, read off a traced model.
#pragma once

#include <cstdint>

#include "norma/models/stack.h"

namespace norma {

struct Budget {
  std::int64_t norm_instances = 0;
  std::int64_t norm_parameters = 0;
  std::int64_t stack_parameters = 0;  // of all layers and the final formula, norms included; no embeddings, no head
};

// Of one stack of the given width. Throws Error for a scheme that a stack cannot build.
Budget stack_budget(const Scheme& scheme, const StackConfig& config, std::int64_t width);

}  // namespace norma
