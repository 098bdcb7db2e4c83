// Where a block of a convolution is, and which pixels and taps its rows and columns mean.
#pragma once

#include "device/cuda/device.cuh"
#include "ops/cuda/convolution.h"

namespace norma::cuda::convolution {

__device__ __forceinline__ int divide(int n, const FastDivisor& by) {
  const auto wide = static_cast<std::uint32_t>(n);
  return by.divisor == 1 ? n : static_cast<int>(__umulhi(wide, by.factor) >> by.shift);
}

// Which part of the result a block computes, of which sum, and over which taps: all, or those that one class of pixels
// sees (ConvolutionCall::classes), which are tap_step apart.
struct BlockPlace {
  int group, split, first_row, first_column, k_begin, k_end;
  int tap_row = 0, tap_column = 0, tap_step = 1, taps_across, stride, padding_y, padding_x;
  int class_row = 0, class_column = 0;  // remainders

  __device__ __forceinline__ BlockPlace(const ConvolutionCall& call, int tiles_n, int rows, int columns) {
    const int tile_m = static_cast<int>(blockIdx.x) / tiles_n, tile_n = static_cast<int>(blockIdx.x) - tile_m * tiles_n;
    const int part = static_cast<int>(blockIdx.y) / call.groups;
    group = static_cast<int>(blockIdx.y) - part * call.groups;
    split = call.classes > 1 ? 0 : part;
    first_row = tile_m * rows;
    first_column = tile_n * columns;
    k_begin = split * call.k_per_split;
    k_end = k_begin + call.k_per_split < call.k ? k_begin + call.k_per_split : call.k;
    taps_across = call.kernel_width;
    stride = call.stride;
    padding_y = padding_x = call.padding;
    if (call.classes > 1) choose_class(call, part);
  }
  __device__ __forceinline__ void choose_class(const ConvolutionCall& call, int part) {
    class_row = part / call.stride;
    class_column = part - class_row * call.stride;
    padding_y = (class_row + call.padding) / call.stride;
    padding_x = (class_column + call.padding) / call.stride;
    tap_row = class_row + call.padding - padding_y * call.stride;
    tap_column = class_column + call.padding - padding_x * call.stride;
    tap_step = call.stride;
    stride = 1;
    const int down = call.kernel_height > tap_row ? (call.kernel_height - tap_row - 1) / tap_step + 1 : 0;
    taps_across = call.kernel_width > tap_column ? (call.kernel_width - tap_column - 1) / tap_step + 1 : 0;
    k_end = down * taps_across * call.depth;
  }
  __device__ __forceinline__ int tap(const ConvolutionCall& call, int row, int column) const {
    return (tap_row + tap_step * row) * call.kernel_width + tap_column + tap_step * column;
  }
};

// A column of the sum over (tap, channel), which walks on by kDepth.
struct TapColumn {
  int k, channel, row, column, across;  // of the taps

  __device__ __forceinline__ TapColumn(const ConvolutionCall& call, const BlockPlace& place, int first)
      : k(first), across(place.taps_across > 0 ? place.taps_across : 1) {
    const int tap = divide(first, call.by_depth);
    channel = first - tap * call.depth;
    row = tap / across;
    column = tap - row * across;
  }
  __device__ __forceinline__ void advance(const ConvolutionCall& call, int by) {
    k += by;
    channel += by;
    while (channel >= call.depth) {
      channel -= call.depth;
      if (++column == across) column = 0, ++row;
    }
  }
};

// The pixel of the gathered image that a tap reaches from (y, x): forward from a pixel of the result, which begins at
// y * stride - padding; backward from y + padding, where stride divides what is left. Negative: none.
template <ConvolutionPass kPass>
__device__ __forceinline__ int reached(const ConvolutionCall& call, const BlockPlace& place, int y, int x, int row,
                                       int column) {
  if constexpr (kPass == ConvolutionPass::data) {
    y -= row * call.dilation, x -= column * call.dilation;
    if (y < 0 || x < 0) return -1;
    const bool strided = place.stride > 1;
    const int down = strided ? divide(y, call.by_stride) : y, along = strided ? divide(x, call.by_stride) : x;
    const bool has = down * place.stride == y && along * place.stride == x && down < call.height && along < call.width;
    return has ? down * call.width + along : -1;
  } else {
    y += row * call.dilation, x += column * call.dilation;
    const bool has = static_cast<unsigned>(y) < static_cast<unsigned>(call.height) &&
                     static_cast<unsigned>(x) < static_cast<unsigned>(call.width);
    return has ? y * call.width + x : -1;
  }
}

// Image number and coordinates of a row of the product, or of a place in the sum.
struct RowPixel {
  int image, y, x;

  __device__ __forceinline__ RowPixel(const ConvolutionCall& call, int pixel) {
    const int line = divide(pixel, call.by_rows_width);
    image = divide(line, call.by_rows_height);
    x = pixel - line * call.rows_width;
    y = line - image * call.rows_height;
  }
};

}  // namespace norma::cuda::convolution
