// Convolutions over images of very few channels in bf16, such as those that a network begins with: all that a pixel of
// the answer sees, at most kMostPatch numbers, is put side by side in shared memory and multiplied from there.
#pragma once

#include "ops/cuda/convolution.h"

namespace norma::cuda {

struct PatchCall {
  Members members = {};
  std::int64_t a = 0, b = 0, out = 0;  // as for ConvolutionCall; out of weights is f32, a line for each split
  int height = 0, width = 0, in = 0;
  int out_height = 0, out_width = 0, channels_out = 0;
  int kernel_height = 0, kernel_width = 0, stride = 1, padding = 0, dilation = 1;
  int pixels = 0;                       // of all answers
  int splits = 1, tiles_per_split = 1;  // of weights
  FastDivisor by_out_width = {}, by_out_height = {};
};

constexpr int kMostPatch = 64, kPatchPixels = 128;  // numbers of a patch; patches of a block at a time

// Whether forward and gradients of weights have such a kernel, where b and out begin at multiples of 16 bytes.
bool patch_convolution(ConvolutionPass pass, const PatchCall& call);
int convolve_patches(ConvolutionPass pass, const PatchCall& call, Stream stream);

}  // namespace norma::cuda
