#include "ops/cuda/convolution_halo.h"

#include <algorithm>
#include <bit>

namespace norma::cuda {
namespace {

bool of_few(const HaloCall& call) { return call.in == call.channels_out && (call.in == 16 || call.in == 32); }

// Rows of one image, or whole images.
bool has_parts(const HaloCall& call) {
  const int pixels = call.height * call.width;
  if (!std::has_single_bit(static_cast<unsigned>(call.width)) || call.width > kHaloSlice) return false;
  if (pixels % kHaloPixels == 0) return true;
  return !of_few(call) && call.width >= 4 && std::has_single_bit(static_cast<unsigned>(pixels)) && pixels >= 16 &&
         call.batch % (kHaloPixels / pixels) == 0;
}

}  // namespace

bool halo_convolution(ConvolutionPass pass, const HaloCall& call) {
  if (call.width < 4 || !has_parts(call)) return false;
  if (of_few(call)) return call.width >= 8;
  if (call.in % kHaloSlice != 0 || call.channels_out % kHaloSlice != 0) return false;
  // The others have enough channels to hide what they read.
  return pass == ConvolutionPass::weights || (call.in == kHaloSlice && call.channels_out == kHaloSlice);
}

bool halo_fits(ConvolutionPass pass, const HaloCall& call) { return of_few(call) || halo::many_fit(pass, call); }

// Enough blocks for one member to fill a card, few enough that partial sums are little beside the images.
void split_halo(HaloCall& call) {
  constexpr int kMultiprocessors = 132;  // of an H100 or H200; a card that is asked would change the order of sums
  const int parts = halo_parts(call), pairs = call.in / kHaloSlice * (call.channels_out / kHaloSlice);
  const int most = of_few(call) ? (call.in == 16 ? 128 : 64) : std::max(1, kMultiprocessors / pairs);
  call.tiles_per_split = (parts + most - 1) / most;
  call.splits = (parts + call.tiles_per_split - 1) / call.tiles_per_split;
}

int convolve_halo(ConvolutionPass pass, const HaloCall& call, Stream stream) {
  return of_few(call) ? halo::convolve_few(pass, call, stream) : halo::convolve_many(pass, call, stream);
}

}  // namespace norma::cuda
