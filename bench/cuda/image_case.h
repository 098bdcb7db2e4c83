// Convolutions and norms over positions of one shape, as checks and timings use them.
#pragma once

#include "bench/cuda/kernel_case.h"

namespace norma::bench {

enum class ImagePass { forward, image, weights };

// Of the kernels that could serve a shape: the one that is chosen; those of im2col with another box or tile; the one
// without im2col.
enum class ImageWay { chosen, by_taps, square, tall, wide, older };

struct ConvolutionSetup {
  ImagePass pass = ImagePass::forward;
  std::int64_t batch = 1, side = 8, in = 16, out = 16, kernel = 3, stride = 1;
  std::int64_t width = 0;  // 0: as the side
  ImageWay way = ImageWay::chosen;

  std::int64_t across() const { return width > 0 ? width : side; }
};
// All ways that differ, the one that is chosen first.
std::vector<ImageWay> ways_of(ConvolutionSetup setup);

KernelCase convolution_case(const ConvolutionSetup& setup);
// BatchNorm with relu behind it, and its gradient. Timed only.
KernelCase batch_norm_case(std::int64_t rows, std::int64_t channels, bool backward);

}  // namespace norma::bench
