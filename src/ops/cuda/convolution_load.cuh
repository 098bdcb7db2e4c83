// How a block brings tiles of a convolution's factors into shared memory. Every thread has one column of V elements
// and some rows, the same in every step, so what a row or a column means is worked out once.
#pragma once

#include "ops/cuda/attention_math.cuh"
#include "ops/cuda/convolution_place.cuh"

namespace norma::cuda::convolution {

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

// V elements to each place, or zeros; where they are read again soon, also to the first cache. Nothing is read from
// where there is nothing.
template <int V, bool kAgain, int kCount, class Element>
__device__ __forceinline__ void copy_elements(Element* const (&to)[kCount], const Element* const (&from)[kCount],
                                              const bool (&has)[kCount]) {
  if constexpr (V * sizeof(Element) == 16 || V * sizeof(Element) == 4) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (to[i] == nullptr) continue;
      const unsigned address = attention::shared_address(to[i]);
      if constexpr (V * sizeof(Element) == 16 && kAgain) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from[i]), "r"(has[i] ? 16 : 0)
                     : "memory");
      } else if constexpr (V * sizeof(Element) == 16) {
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

// a of forward and data: rows are pixels, columns (tap, channel). kStrided: a gradient by a strided image may come
// without classes. kChunked: see TapColumn.
template <class Element, ConvolutionPass kPass, bool kStrided, bool kChunked, int kRows, int kDepth, int V,
          int kThreads, class Layout>
class GatheredRows {
  using Mine = Share<kRows, kDepth, V, kThreads>;
  static constexpr bool kBack = kPass == ConvolutionPass::data;  // taps reach back, not forth

 public:
  __device__ __forceinline__ GatheredRows(const ConvolutionCall& call, const BlockPlace& place, const Element* image)
      : column_(call, place, place.k_begin + Mine::column()) {
#pragma unroll
    for (int i = 0; i < Mine::kCount; ++i) {
      const int row = place.first_row + Mine::row(i);
      const RowPixel pixel(call, row < call.m ? row : 0);
      y_[i] = kBack ? pixel.y + place.padding_y : pixel.y * call.stride - call.padding;
      x_[i] = kBack ? pixel.x + place.padding_x : pixel.x * call.stride - call.padding;
      // Of a gradient with a stride that has no classes only the image is known yet.
      const bool strided = kStrided && kBack && place.stride > 1;
      const std::int64_t within = strided ? 0 : std::int64_t{y_[i]} * call.width + x_[i];
      row_[i] = image + (std::int64_t{pixel.image} * call.height * call.width + within) * call.channels;
      if (row >= call.m || !Mine::has(i)) y_[i] = kNowhere;
    }
  }
  __device__ __forceinline__ void load(const ConvolutionCall& call, const BlockPlace& place, Element* tile) {
    Element* to[Mine::kCount];
    const Element* from[Mine::kCount];
    bool has[Mine::kCount];
    const bool exists = column_.k < place.k_end;
    const int down = kBack ? -column_.row * call.dilation : column_.row * call.dilation;
    const int along = kBack ? -column_.column * call.dilation : column_.column * call.dilation;
    const int moved = (down * call.width + along) * call.channels + column_.channel;
#pragma unroll
    for (int i = 0; i < Mine::kCount; ++i) {
      to[i] = Mine::has(i) ? tile + Layout::place(Mine::row(i), Mine::column()) : nullptr;
      int y = y_[i] + down, x = x_[i] + along;
      from[i] = row_[i] + moved;
      if (kStrided && kBack && place.stride > 1) {
        const int place_y = y < 0 ? 0 : divide(y, call.by_stride), place_x = x < 0 ? 0 : divide(x, call.by_stride);
        from[i] = row_[i] + (std::int64_t{place_y} * call.width + place_x) * call.channels + column_.channel;
        y = place_y * call.stride == y ? place_y : kNowhere;
        x = place_x * call.stride == x ? place_x : kNowhere;
      }
      has[i] = exists && static_cast<unsigned>(y) < static_cast<unsigned>(call.height) &&
               static_cast<unsigned>(x) < static_cast<unsigned>(call.width);
    }
    copy_elements<V, true>(to, from, has);
    column_.template advance<kChunked>(call, place, kDepth);
  }

 private:
  static constexpr int kNowhere = -(1 << 30);
  TapColumn column_;
  const Element* row_[Mine::kCount];  // where the first tap finds the row; it may lie outside of the image
  int y_[Mine::kCount], x_[Mine::kCount];
};

// a of weights: rows are pixels of the sum, columns (tap, channel) of the result.
template <class Element, int kColumns, int kDepth, int V, int kThreads, class Layout>
class GatheredColumns {
  using Mine = Share<kDepth, kColumns, V, kThreads>;

 public:
  __device__ __forceinline__ GatheredColumns(const ConvolutionCall& call, const BlockPlace& place, const Element* image)
      : image_(image), k_(place.k_begin) {
    const TapColumn column(call, place, place.first_row + Mine::column());
    exists_ = place.first_row + Mine::column() < call.m;
    channel_ = column.channel;
    down_ = column.row * call.dilation - call.padding;
    along_ = column.column * call.dilation - call.padding;
  }
  __device__ __forceinline__ void load(const ConvolutionCall& call, const BlockPlace& place, Element* tile) {
    Element* to[Mine::kCount];
    const Element* from[Mine::kCount];
    bool has[Mine::kCount];
#pragma unroll
    for (int i = 0; i < Mine::kCount; ++i) {
      to[i] = Mine::has(i) ? tile + Layout::place(Mine::row(i), Mine::column()) : nullptr;
      const int k = k_ + Mine::row(i);
      const RowPixel pixel(call, k < place.k_end ? k : 0);
      const int y = pixel.y * call.stride + down_, x = pixel.x * call.stride + along_;
      has[i] = exists_ && k < place.k_end && static_cast<unsigned>(y) < static_cast<unsigned>(call.height) &&
               static_cast<unsigned>(x) < static_cast<unsigned>(call.width);
      const int at = (pixel.image * call.height + y) * call.width + x;
      from[i] = has[i] ? image_ + std::int64_t{at} * call.channels + channel_ : image_;
    }
    copy_elements<V, true>(to, from, has);
    k_ += kDepth;
  }

 private:
  const Element* image_;
  int k_, channel_, down_, along_;
  bool exists_;
};

// b of forward and weights: rows are k, columns n.
template <class Element, bool kChunked, int kColumns, int kDepth, int V, int kThreads, class Layout>
class PlainColumns {
  using Mine = Share<kDepth, kColumns, V, kThreads>;

 public:
  __device__ __forceinline__ PlainColumns(const ConvolutionCall& call, const BlockPlace& place, const Element* matrix)
      : column_(call, place, place.k_begin), k_(place.k_begin + Mine::row(0)) {
    const int column = place.first_column + Mine::column();
    exists_ = column < call.n;
    next_ = matrix + std::int64_t{kChunked ? Mine::row(0) : k_} * call.b_row + column;
  }
  __device__ __forceinline__ void load(const ConvolutionCall& call, const BlockPlace& place, Element* tile) {
    Element* to[Mine::kCount];
    const Element* from[Mine::kCount];
    bool has[Mine::kCount];
    const Element* const first =
        kChunked ? next_ + (std::int64_t{place.tap(call, column_.row, column_.column)} * call.depth + column_.channel) *
                               call.b_row
                 : next_;
#pragma unroll
    for (int i = 0; i < Mine::kCount; ++i) {
      to[i] = Mine::has(i) ? tile + Layout::place(Mine::row(i), Mine::column()) : nullptr;
      has[i] = exists_ && k_ + i * Mine::kStep < place.k_end && Mine::has(i);
      from[i] = first + i * Mine::kStep * call.b_row;
    }
    copy_elements<V, false>(to, from, has);
    k_ += kDepth;
    if constexpr (kChunked) {
      column_.template advance<kChunked>(call, place, kDepth);
    } else {
      next_ += std::int64_t{kDepth} * call.b_row;
    }
  }

 private:
  TapColumn column_;  // of the first row, where steps go through taps first
  int k_;
  bool exists_;
  const Element* next_;
};

// b of data: rows are channels that are read (n), columns (tap, channel that is written).
template <class Element, bool kChunked, int kRows, int kDepth, int V, int kThreads, class Layout>
class PlainRows {
  using Mine = Share<kRows, kDepth, V, kThreads>;

 public:
  __device__ __forceinline__ PlainRows(const ConvolutionCall& call, const BlockPlace& place, const Element* matrix)
      : column_(call, place, place.k_begin + Mine::column()), n_(place.first_column + Mine::row(0)) {
    first_ = matrix + std::int64_t{n_} * call.b_row;
  }
  __device__ __forceinline__ void load(const ConvolutionCall& call, const BlockPlace& place, Element* tile) {
    Element* to[Mine::kCount];
    const Element* from[Mine::kCount];
    bool has[Mine::kCount];
    const bool exists = column_.k < place.k_end;
    const std::int64_t tap = std::int64_t{place.tap(call, column_.row, column_.column)} * call.taps_in * call.b_row;
    const Element* const first = first_ + tap + column_.channel;
#pragma unroll
    for (int i = 0; i < Mine::kCount; ++i) {
      to[i] = Mine::has(i) ? tile + Layout::place(Mine::row(i), Mine::column()) : nullptr;
      has[i] = exists && n_ + i * Mine::kStep < call.n && Mine::has(i);
      from[i] = first + i * Mine::kStep * call.b_row;
    }
    copy_elements<V, false>(to, from, has);
    column_.template advance<kChunked>(call, place, kDepth);
  }

 private:
  TapColumn column_;
  int n_;
  const Element* first_;
};

}  // namespace norma::cuda::convolution
