// The branch of a residual block of convolutions, what it does to a stream that it must be added to, and the weights of
// convolutions.
#pragma once

#include "models/resnet/layout.h"
#include "norma/models/layer_branch.h"
#include "norma/ops/convolution.h"

namespace norma {

// conv(act(inner norm(conv(x)))), 3 x 3 each; of a bottleneck 1 x 1, 3 x 3 and 1 x 1.
LayerBranch convolution_layer_branch(const ImageLayout& layout);

// A weight [kernel, kernel, in / groups, out] named "weight" in a scope of this name, and what it makes of x[batch,
// height, width, in]. It starts with the deviation sqrt(2 / (kernel^2 out)) (He et al. 2015) unless a rule for its role
// says otherwise. With a bias where asked for.
struct ConvolutionWeight {
  const char* scope;
  std::string role;
  std::int64_t kernel = 3, out = 0;
  std::int64_t stride = 1;
  bool bias = false;
};
Wire convolve(Parameters& parameters, Wire x, const ConvolutionWeight& weight, const SchemeRules& rules);

}  // namespace norma
