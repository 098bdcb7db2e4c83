// The branch of a residual block of convolutions, and what it does to a stream that it must be added to.
#pragma once

#include "models/resnet/layout.h"
#include "norma/models/layer_branch.h"

namespace norma {

// Plain: conv(act(inner norm(conv(x)))), 3 x 3 each; of a bottleneck 1 x 1, 3 x 3 and 1 x 1.
// Inverted: wide(act(narrow(inner norm(depthwise conv(x))))), 7 x 7 and twice 1 x 1 (Liu et al. 2022).
LayerBranch convolution_layer_branch(const ImageLayout& layout);

}  // namespace norma
