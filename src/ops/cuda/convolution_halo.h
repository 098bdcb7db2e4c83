// Convolutions of 3 x 3 in bf16 whose blocks bring a part of an image with its border to shared memory once, where all
// taps read it: for images of few channels, which compute little beside what they read, and for gradients of weights,
// which otherwise read every image once for every tap.
#pragma once

#include "ops/cuda/convolution.h"

namespace norma::cuda {

struct HaloCall {
  Members members = {};
  std::int64_t a = 0, b = 0, out = 0;  // as for ConvolutionCall; out of weights is f32, a line for each split
  int batch = 0, height = 0, width = 0;
  int in = 0, channels_out = 0;
  int splits = 1, tiles_per_split = 1;  // of weights
};

constexpr int kHaloPixels = 256;  // of a block's part: rows of one image, or whole images
constexpr int kHaloSlice = 64;    // channels that a block takes at once, where there are many

inline int halo_parts(const HaloCall& call) { return call.batch * call.height * call.width / kHaloPixels; }

// Whether a convolution of these sizes, all of it bf16 but gradients of weights, has such a kernel. Where it runs needs
// tensors that begin at multiples of 16 bytes, and shared memory: see halo_fits.
bool halo_convolution(ConvolutionPass pass, const HaloCall& call);
bool halo_fits(ConvolutionPass pass, const HaloCall& call);
// Parts of the sum over pixels, and how many tiles each has.
void split_halo(HaloCall& call);
int convolve_halo(ConvolutionPass pass, const HaloCall& call, Stream stream);

namespace halo {
// Of 16 or 32 channels; of multiples of kHaloSlice.
int convolve_few(ConvolutionPass pass, const HaloCall& call, Stream stream);
int convolve_many(ConvolutionPass pass, const HaloCall& call, Stream stream);
bool many_fit(ConvolutionPass pass, const HaloCall& call);  // into the shared memory of a block
}  // namespace halo

}  // namespace norma::cuda
