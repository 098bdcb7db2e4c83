// Whether a scheme has what the layers of a stack need, and which of its formulas they take.
#pragma once

#include "norma/models/stack.h"

namespace norma {

// The configuration with its width. Throws NotBuiltError for what a stack cannot build.
StackConfig checked(const Scheme& scheme, StackConfig config, std::int64_t width);

const Formula* layer_formula(const Scheme& scheme, const StackConfig& config);  // for a whole layer, or null
const Formula* branch_formula(const Scheme& scheme, const BranchKind& kind);    // for one of its branches, or null

}  // namespace norma
