// The products of a convolution's tiles by one warp, in three kinds of arithmetic. Accumulators are as in
// attention_math.cuh: tiles of 16 x 8, thread (g, t) has rows g and g + 8, columns 2 t and 2 t + 1. A factor lies in
// shared memory with its sum along rows (kAlong) or across them.
#pragma once

#include "ops/cuda/attention_math.cuh"

namespace norma::cuda::convolution {

using attention::Bf16Unit;
using attention::Tf32Unit;

// Padding of rows in elements, so that what a warp reads at once lies in different banks.
template <class Element>
__host__ __device__ constexpr int padding_of(bool along) {
  return sizeof(Element) == 2 || !along ? 8 : 4;
}

struct Bf16Math {
  using Element = __nv_bfloat16;
  static constexpr int kDepth = 32, kStep = 16;

  // a: rows m of the warp's tile, columns k, or the transpose; `stride` elements apart.
  template <bool kAlong, int kM>
  __device__ static __forceinline__ void load_a(unsigned (&a)[kM][4], const Element* tile, int stride, int k) {
    const int lane = attention::lane_of();
    const int low = lane & 7, middle = (lane >> 3 & 1) * 8, high = (lane >> 4) * 8;
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      if constexpr (kAlong) {
        attention::load_matrices(a[m], tile + (16 * m + low + middle) * stride + k + high);
      } else {
        attention::load_matrices_transposed(a[m], tile + (k + low + high) * stride + 16 * m + middle);
      }
    }
  }
  template <bool kAlong, int kN>
  __device__ static __forceinline__ void load_b(unsigned (&b)[kN][2], const Element* tile, int stride, int k) {
    static_assert(kN % 2 == 0);
    const int lane = attention::lane_of();
    const int low = lane & 7, middle = (lane >> 3 & 1) * 8, high = (lane >> 4) * 8;
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      unsigned both[4];
      if constexpr (kAlong) {
        attention::load_matrices(both, tile + (8 * n + low + high) * stride + k + middle);
      } else {
        attention::load_matrices_transposed(both, tile + (k + low + middle) * stride + 8 * n + high);
      }
      b[n][0] = both[0], b[n][1] = both[1], b[n + 1][0] = both[2], b[n + 1][1] = both[3];
    }
  }
  __device__ static __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    Bf16Unit::mma(c, a, b[0], b[1]);
  }
};

struct Tf32Math {
  using Element = float;
  static constexpr int kDepth = 16, kStep = 8;

  template <bool kAlong>
  __device__ static __forceinline__ unsigned element(const Element* tile, int stride, int row, int k) {
    return attention::round_to_tf32(kAlong ? tile[row * stride + k] : tile[k * stride + row]);
  }
  template <bool kAlong, int kM>
  __device__ static __forceinline__ void load_a(unsigned (&a)[kM][4], const Element* tile, int stride, int k) {
    const int g = attention::lane_of() >> 2, t = attention::lane_of() & 3;
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[m][i] = element<kAlong>(tile, stride, 16 * m + g + (i & 1) * 8, k + t + (i >> 1) * 4);
    }
  }
  template <bool kAlong, int kN>
  __device__ static __forceinline__ void load_b(unsigned (&b)[kN][2], const Element* tile, int stride, int k) {
    const int g = attention::lane_of() >> 2, t = attention::lane_of() & 3;
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) b[n][i] = element<kAlong>(tile, stride, 8 * n + g, k + t + 4 * i);
    }
  }
  __device__ static __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    Tf32Unit::mma(c, a, b[0], b[1]);
  }
};

// Whole f32: a step of one, in which a thread has two rows of a and two columns of b.
struct F32Math {
  using Element = float;
  static constexpr int kDepth = 16, kStep = 1;

  template <bool kAlong, int kM>
  __device__ static __forceinline__ void load_a(unsigned (&a)[kM][4], const Element* tile, int stride, int k) {
    const int g = attention::lane_of() >> 2;
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = 16 * m + g + 8 * i;
        a[m][i] = __float_as_uint(kAlong ? tile[row * stride + k] : tile[k * stride + row]);
      }
    }
  }
  template <bool kAlong, int kN>
  __device__ static __forceinline__ void load_b(unsigned (&b)[kN][2], const Element* tile, int stride, int k) {
    const int t = attention::lane_of() & 3;
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = 8 * n + 2 * t + i;
        b[n][i] = __float_as_uint(kAlong ? tile[row * stride + k] : tile[k * stride + row]);
      }
    }
  }
  __device__ static __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) c[i] = fmaf(__uint_as_float(a[i >> 1]), __uint_as_float(b[i & 1]), c[i]);
  }
};

}  // namespace norma::cuda::convolution
