// The named rewrites over ops: matmul_add, scaled_add, linear_activation, linear_cross_entropy.
#pragma once

#include <vector>

#include "norma/graph/rewrite.h"

namespace norma {

std::vector<Rewrite> op_fusions();

}  // namespace norma
