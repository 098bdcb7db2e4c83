// Gradient norms by layer and role (Xiong et al. 2020): the gradient is averaged over batches first, then its norm
// taken; the plain norm of single batches stands beside it.
#pragma once

#include <string>
#include <vector>

#include "norma/lab/subject.h"

namespace norma {

struct ParameterGradient {
  std::string name, role;
  std::string layer;              // "layers.3"
  std::vector<double> of_mean;    // by member: norm of the mean gradient
  std::vector<double> per_batch;  // by member: mean norm of the gradients of single batches
};

struct GradientProfile {
  std::vector<ParameterGradient> parameters;
  std::vector<double> loss;  // by member, mean over the batches

  const ParameterGradient& at(std::string_view name) const;  // throws Error
  // Norm over all parameters of one layer (and, when given, one role), by member.
  std::vector<double> of_layer(std::string_view layer, std::string_view role = "") const;
};

GradientProfile measure_gradient(const Subject& subject, int batches = 8);

}  // namespace norma
