// The named rewrites over norms.
//   add_norm           norm(x1 + x2 + ...) becomes one op that also gives the sum where it is read elsewhere
//   norm_backward_add  the gradient through a norm and those that bypass it are added where the first is made
// and, for devices whose norms take scales, after those:
//   norm_scale           norm(a x1 + b x2 + ...): a term's factor, one number or one for every channel, goes into the
//   norm norm_backward_scale  the factor on a gradient goes where a norm makes that gradient, which it then gives both
//   ways
// For devices whose norms have it, after all of those:
//   row_norm_relu        relu(norm(x)) of a norm along the row becomes one op
// For devices whose norms over positions have it:
//   channel_norm_relu           relu(norm(x)) and relu(norm(x) + y) become one op
//   channel_norm_relu_backward  and so do the gradients of the first, where relu is applied again instead of kept
#pragma once

#include <vector>

#include "norma/graph/rewrite.h"

namespace norma {

std::vector<Rewrite> norm_fusions();
std::vector<Rewrite> norm_scale_fusions();
std::vector<Rewrite> norm_relu_fusions();
std::vector<Rewrite> channel_norm_fusions();

}  // namespace norma
