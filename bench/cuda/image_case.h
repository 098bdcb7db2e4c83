// Convolutions and norms over positions of one shape, as checks and timings use them.
#pragma once

#include "bench/cuda/kernel_case.h"

namespace norma::bench {

enum class ImagePass { forward, image, weights };

struct ConvolutionSetup {
  ImagePass pass = ImagePass::forward;
  std::int64_t batch = 1, side = 8, in = 16, out = 16, kernel = 3, stride = 1;
};

KernelCase convolution_case(const ConvolutionSetup& setup);
// BatchNorm with relu behind it, and its gradient. Timed only.
KernelCase batch_norm_case(std::int64_t rows, std::int64_t channels, bool backward);

}  // namespace norma::bench
