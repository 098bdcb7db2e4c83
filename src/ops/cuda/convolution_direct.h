// Convolutions whose groups are too thin for tiles of a matrix product, depthwise ones above all: a thread to an
// element of the result.
#pragma once

#include "norma/device/cuda/kernel.h"
#include "ops/cuda/convolution.h"

namespace norma::cuda {

struct DirectConvolution {
  Members members = {};
  std::int64_t a = 0, b = 0, out = 0;  // as ConvolutionCall
  std::int64_t batch = 1, height = 1, width = 1, in = 1, out_height = 1, out_width = 1, channels_out = 1;
  int kernel_height = 1, kernel_width = 1, stride = 1, padding = 0, dilation = 1;
  std::int64_t in_group = 1, out_group = 1;       // channels of one group
  std::int64_t splits = 1, pixels_per_split = 0;  // of weights: each split writes a line of partial sums
  bool narrow = false, narrow_out = false;        // factors, result
};
int convolve_directly(ConvolutionPass pass, const DirectConvolution& call, Stream stream);

}  // namespace norma::cuda
