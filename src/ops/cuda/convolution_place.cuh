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
  int tap_row = 0, tap_column = 0, tap_step = 1, taps_down, taps_across, stride, padding_y, padding_x;
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
    taps_down = call.kernel_height;
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
    taps_down = call.kernel_height > tap_row ? (call.kernel_height - tap_row - 1) / tap_step + 1 : 0;
    taps_across = call.kernel_width > tap_column ? (call.kernel_width - tap_column - 1) / tap_step + 1 : 0;
    k_end = taps_down * taps_across * call.depth;
  }
  __device__ __forceinline__ int tap(const ConvolutionCall& call, int row, int column) const {
    return (tap_row + tap_step * row) * call.kernel_width + tap_column + tap_step * column;
  }
};

// A column of the sum over (tap, channel), which walks on by kDepth: along channels and then to the next tap; or, where
// channels are whole steps (chunked), through all taps and then to the next channels, so that what is gathered for one
// tap is still near for the next.
struct TapColumn {
  int k, channel, row, column, across;  // of the taps

  __device__ __forceinline__ TapColumn(const ConvolutionCall& call, const BlockPlace& place, int first)
      : k(first), across(place.taps_across > 0 ? place.taps_across : 1) {
    const int tap = divide(first, call.by_depth);
    channel = first - tap * call.depth;
    row = tap / across;
    column = tap - row * across;
  }
  template <bool kChunked>
  __device__ __forceinline__ void advance(const ConvolutionCall& call, const BlockPlace& place, int by) {
    k += by;
    if constexpr (kChunked) {
      ++column;
      const bool next_row = column == across;
      column = next_row ? 0 : column;
      row += next_row ? 1 : 0;
      const bool next_channels = row == place.taps_down;
      row = next_channels ? 0 : row;
      channel += next_channels ? by : 0;
    } else {
      channel += by;
      while (channel >= call.depth) {
        channel -= call.depth;
        if (++column == across) column = 0, ++row;
      }
    }
  }
};

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
