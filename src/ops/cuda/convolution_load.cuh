// How a block brings tiles of a convolution's factors into shared memory. Every thread has one column of V elements
// and some rows, the same in every step, so what a row or a column means is worked out once.
#pragma once

#include "device/cuda/device.cuh"
#include "ops/cuda/attention_math.cuh"
#include "ops/cuda/convolution.h"

namespace norma::cuda::convolution {

__device__ __forceinline__ int divide(int n, const FastDivisor& by) {
  const auto wide = static_cast<std::uint32_t>(n);
  return by.divisor == 1 ? n : static_cast<int>(__umulhi(wide, by.factor) >> by.shift);
}

// What a thread of kThreads has of a tile of kRows x kColumns.
template <int kRows, int kColumns, int V, int kThreads>
struct Share {
  static constexpr int kAcross = kColumns / V, kStep = kThreads / kAcross;
  static constexpr int kCount = kRows > kStep ? kRows / kStep : 1;
  static_assert(kThreads % kAcross == 0 && (kRows % kStep == 0 || kRows < kStep));

  __device__ static __forceinline__ int column() { return static_cast<int>(threadIdx.x) % kAcross * V; }
  __device__ static __forceinline__ int row(int i) { return static_cast<int>(threadIdx.x) / kAcross + i * kStep; }
  __device__ static __forceinline__ bool has(int i) { return kRows >= kStep || row(i) < kRows; }
};

// Where the element of a row and column of a tile lies: rows kStride apart; or as wgmma reads them, in parts of 64
// columns with kRows rows of 128 bytes each, whose 16-byte chunks are permuted by the row (attention_wgmma.cuh).
template <int kStride>
struct PaddedLayout {
  __device__ static __forceinline__ int place(int row, int column) { return row * kStride + column; }
};
template <int kRows>
struct SwizzledLayout {
  __device__ static __forceinline__ int place(int row, int column) {
    return (column >> 6) * (kRows * 64) + row * 64 + ((column & 63) ^ ((row & 7) << 3));
  }
};

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// V elements to each place, or zeros.
template <int V, int kCount, class Element>
__device__ __forceinline__ void copy_elements(Element* const (&to)[kCount], const Element* const (&from)[kCount],
                                              const bool (&has)[kCount]) {
  if constexpr (V * sizeof(Element) == 16 || V * sizeof(Element) == 4) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (to[i] == nullptr) continue;
      const unsigned address = attention::shared_address(to[i]);
      if constexpr (V * sizeof(Element) == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from[i]), "r"(has[i] ? 16 : 0)
                     : "memory");
      } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from[i]), "r"(has[i] ? 4 : 0)
                     : "memory");
      }
    }
  } else {
    static_assert(V == 1);
    Element values[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = has[i] ? *from[i] : Element(0.0f);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (to[i] != nullptr) *to[i] = values[i];
    }
  }
}

// A column of the sum over (tap, channel), which walks on by kDepth.
struct TapColumn {
  int k, channel, tap, row, column;  // of the kernel

  __device__ __forceinline__ TapColumn(const ConvolutionCall& call, int first) : k(first) {
    tap = divide(first, call.by_depth);
    channel = first - tap * call.depth;
    row = divide(tap, call.by_kernel_width);
    column = tap - row * call.kernel_width;
  }
  __device__ __forceinline__ void advance(const ConvolutionCall& call, int by) {
    k += by;
    channel += by;
    while (channel >= call.depth) {
      channel -= call.depth;
      ++tap;
      if (++column == call.kernel_width) column = 0, ++row;
    }
  }
};

// The pixel of the gathered image that a tap reaches from (y, x): forward from a pixel of the result, which begins at
// y * stride - padding; backward from y + padding, where stride divides what is left. Negative: none.
template <ConvolutionPass kPass>
__device__ __forceinline__ int reached(const ConvolutionCall& call, int y, int x, int row, int column) {
  if constexpr (kPass == ConvolutionPass::data) {
    y -= row * call.dilation, x -= column * call.dilation;
    if (y < 0 || x < 0) return -1;
    const int down = divide(y, call.by_stride), along = divide(x, call.by_stride);
    const bool has = down * call.stride == y && along * call.stride == x && down < call.height && along < call.width;
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

// a of forward and data: rows are pixels, columns (tap, channel).
template <class Element, ConvolutionPass kPass, int kRows, int kDepth, int V, int kThreads, class Layout>
class GatheredRows {
  using Mine = Share<kRows, kDepth, V, kThreads>;

 public:
  __device__ __forceinline__ GatheredRows(const ConvolutionCall& call, const Element* image, int first_row, int k_begin,
                                          int k_end)
      : image_(image), k_end_(k_end), column_(call, k_begin + Mine::column()) {
#pragma unroll
    for (int i = 0; i < Mine::kCount; ++i) {
      const int row = first_row + Mine::row(i);
      const RowPixel pixel(call, row < call.m ? row : 0);
      const bool back = kPass == ConvolutionPass::data;
      start_[i] = row < call.m && Mine::has(i) ? pixel.image * call.height * call.width : -1;
      y_[i] = back ? pixel.y + call.padding : pixel.y * call.stride - call.padding;
      x_[i] = back ? pixel.x + call.padding : pixel.x * call.stride - call.padding;
    }
  }
  __device__ __forceinline__ void load(const ConvolutionCall& call, Element* tile) {
    Element* to[Mine::kCount];
    const Element* from[Mine::kCount];
    bool has[Mine::kCount];
#pragma unroll
    for (int i = 0; i < Mine::kCount; ++i) {
      to[i] = Mine::has(i) ? tile + Layout::place(Mine::row(i), Mine::column()) : nullptr;
      const int pixel = reached<kPass>(call, y_[i], x_[i], column_.row, column_.column);
      has[i] = start_[i] >= 0 && pixel >= 0 && column_.k < k_end_;
      from[i] = has[i] ? image_ + std::int64_t{start_[i] + pixel} * call.channels + column_.channel : image_;
    }
    copy_elements<V>(to, from, has);
    column_.advance(call, kDepth);
  }

 private:
  const Element* image_;
  int k_end_;
  TapColumn column_;
  int start_[Mine::kCount], y_[Mine::kCount], x_[Mine::kCount];
};

// a of weights: rows are pixels of the sum, columns (tap, channel) of the result.
template <class Element, int kColumns, int kDepth, int V, int kThreads, class Layout>
class GatheredColumns {
  using Mine = Share<kDepth, kColumns, V, kThreads>;

 public:
  __device__ __forceinline__ GatheredColumns(const ConvolutionCall& call, const Element* image, int first_column,
                                             int k_begin, int k_end)
      : image_(image), k_(k_begin), k_end_(k_end), column_(call, first_column + Mine::column()) {
    exists_ = first_column + Mine::column() < call.m;
    down_ = column_.row * call.dilation - call.padding;
    along_ = column_.column * call.dilation - call.padding;
  }
  __device__ __forceinline__ void load(const ConvolutionCall& call, Element* tile) {
    Element* to[Mine::kCount];
    const Element* from[Mine::kCount];
    bool has[Mine::kCount];
#pragma unroll
    for (int i = 0; i < Mine::kCount; ++i) {
      to[i] = Mine::has(i) ? tile + Layout::place(Mine::row(i), Mine::column()) : nullptr;
      const int k = k_ + Mine::row(i);
      const RowPixel pixel(call, k < k_end_ ? k : 0);
      const int y = pixel.y * call.stride + down_, x = pixel.x * call.stride + along_;
      has[i] = exists_ && k < k_end_ && static_cast<unsigned>(y) < static_cast<unsigned>(call.height) &&
               static_cast<unsigned>(x) < static_cast<unsigned>(call.width);
      const int at = (pixel.image * call.height + y) * call.width + x;
      from[i] = has[i] ? image_ + std::int64_t{at} * call.channels + column_.channel : image_;
    }
    copy_elements<V>(to, from, has);
    k_ += kDepth;
  }

 private:
  const Element* image_;
  int k_, k_end_;
  TapColumn column_;
  int down_, along_;
  bool exists_;
};

// b of forward and weights: rows are k, columns n.
template <class Element, int kColumns, int kDepth, int V, int kThreads, class Layout>
class PlainColumns {
  using Mine = Share<kDepth, kColumns, V, kThreads>;

 public:
  __device__ __forceinline__ PlainColumns(const ConvolutionCall& call, const Element* matrix, int first_column,
                                          int k_begin, int k_end)
      : matrix_(matrix), k_(k_begin), k_end_(k_end), column_(first_column + Mine::column()) {
    exists_ = column_ < call.n;
  }
  __device__ __forceinline__ void load(const ConvolutionCall& call, Element* tile) {
    Element* to[Mine::kCount];
    const Element* from[Mine::kCount];
    bool has[Mine::kCount];
#pragma unroll
    for (int i = 0; i < Mine::kCount; ++i) {
      to[i] = Mine::has(i) ? tile + Layout::place(Mine::row(i), Mine::column()) : nullptr;
      const int k = k_ + Mine::row(i);
      has[i] = exists_ && k < k_end_ && Mine::has(i);
      from[i] = has[i] ? matrix_ + std::int64_t{k} * call.b_row + column_ : matrix_;
    }
    copy_elements<V>(to, from, has);
    k_ += kDepth;
  }

 private:
  const Element* matrix_;
  int k_, k_end_, column_;
  bool exists_;
};

// b of data: rows are channels that are read (n), columns (tap, channel that is written).
template <class Element, int kRows, int kDepth, int V, int kThreads, class Layout>
class PlainRows {
  using Mine = Share<kRows, kDepth, V, kThreads>;

 public:
  __device__ __forceinline__ PlainRows(const ConvolutionCall& call, const Element* matrix, int first_row, int k_begin,
                                       int k_end)
      : matrix_(matrix), first_(first_row), k_end_(k_end), column_(call, k_begin + Mine::column()) {}
  __device__ __forceinline__ void load(const ConvolutionCall& call, Element* tile) {
    Element* to[Mine::kCount];
    const Element* from[Mine::kCount];
    bool has[Mine::kCount];
#pragma unroll
    for (int i = 0; i < Mine::kCount; ++i) {
      to[i] = Mine::has(i) ? tile + Layout::place(Mine::row(i), Mine::column()) : nullptr;
      const int n = first_ + Mine::row(i);
      has[i] = n < call.n && column_.k < k_end_ && Mine::has(i);
      from[i] =
          has[i] ? matrix_ + (std::int64_t{column_.tap} * call.taps_in + n) * call.b_row + column_.channel : matrix_;
    }
    copy_elements<V>(to, from, has);
    column_.advance(call, kDepth);
  }

 private:
  const Element* matrix_;
  int first_, k_end_;
  TapColumn column_;
};

}  // namespace norma::cuda::convolution
