// Convolutions as matrix products whose first factor is gathered from an image while it is read (implicit GEMM):
//   forward  y[pixel, o]       = sum over (tap, c) of x[pixel moved by tap, c] W[tap, c, o]
//   data     dx[pixel, c]      = sum over (tap, o) of dy[pixel moved back by tap, o] W[tap, c, o]
//   weights  dW[(tap, c), o]   = sum over pixels of x[pixel moved by tap, c] dy[pixel, o]
#pragma once

#include <bit>
#include <cstdint>

#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

enum class ConvolutionPass { forward, data, weights };

// n / divisor of 0 <= n < 2^31 by a multiplication.
struct FastDivisor {
  std::uint32_t divisor = 1, factor = 0, shift = 0;

  FastDivisor() = default;
  explicit FastDivisor(std::int64_t by) : divisor(static_cast<std::uint32_t>(by)) {
    if (divisor == 1) return;
    const auto bits = static_cast<std::uint32_t>(std::bit_width(divisor - 1));  // ceil of the logarithm
    factor = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + bits)) + divisor - 1) / divisor);
    shift = bits - 1;
  }
};

struct ConvolutionCall {
  Members members = {};
  std::int64_t a = 0, b = 0, out = 0;  // the gathered image, the other factor, the result
  // Of the gathered image; its channels, and those of one group.
  int height = 1, width = 1, channels = 1, depth = 1;
  // Of the image whose pixels are rows of the product, or what is summed over.
  int rows_height = 1, rows_width = 1;
  int kernel_width = 1, stride = 1, padding = 0, dilation = 1, groups = 1;
  int m = 1, n = 1, k = 1;                  // of the product of one group
  int b_row = 1, out_row = 1, taps_in = 1;  // elements of a row of b and of the result; channels a group reads
  int splits = 1, k_per_split = 1;          // parts of k, each with a result of its own: split * split_elements
  // Of data with a stride: 1, or its square. Pixels whose coordinates leave the same remainders see the same taps, and
  // are rows of a product of their own.
  int classes = 1, kernel_height = 1;
  std::int64_t split_elements = 0;
  bool narrow_out = false, wide_out = false;  // bf16; whole accesses
  FastDivisor by_rows_width = {}, by_rows_height = {}, by_depth = {}, by_stride = {};
};

// Blocks of a result are kM x kN; those that few channels leave idle are narrower.
enum class ConvolutionTile { single, n16, n32, n64, n128 };        // single: elements are read one by one
constexpr int kConvolutionDepth16 = 32, kConvolutionDepth32 = 16;  // of a step along k, by the width of elements

struct ConvolutionLaunch {
  ConvolutionPass pass = ConvolutionPass::forward;
  ConvolutionTile tile = ConvolutionTile::single;
};
int convolve_bf16(const ConvolutionLaunch& launch, const ConvolutionCall& call, Stream stream);
int convolve_tf32(const ConvolutionLaunch& launch, const ConvolutionCall& call, Stream stream);
int convolve_f32(const ConvolutionLaunch& launch, const ConvolutionCall& call, Stream stream);

// Rows and columns of a block.
constexpr int tile_rows(ConvolutionTile tile) { return tile == ConvolutionTile::single ? 64 : 128; }
constexpr int tile_columns(ConvolutionTile tile) {
  switch (tile) {
    case ConvolutionTile::single: return 64;
    case ConvolutionTile::n16: return 16;
    case ConvolutionTile::n32: return 32;
    case ConvolutionTile::n64: return 64;
    case ConvolutionTile::n128: return 128;
  }
  return 0;
}

}  // namespace norma::cuda
