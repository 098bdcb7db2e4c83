// The named rewrites over norms.
//   add_norm           norm(x1 + x2 + ...) becomes one op that also gives the sum where it is read elsewhere
//   norm_backward_add  the gradient through a norm and those that bypass it are added where the first is made
#pragma once

#include <vector>

#include "norma/graph/rewrite.h"

namespace norma {

std::vector<Rewrite> norm_fusions();

}  // namespace norma
