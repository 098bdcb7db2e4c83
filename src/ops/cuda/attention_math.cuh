// The matrix products of attention by one warp, in three kinds of arithmetic. Accumulators are tiles of 16 x 8 in which
// a thread (g, t), g < 8, t < 4, has rows g (elements 0 and 1) and g + 8 (elements 2 and 3), columns 2 t and 2 t + 1.
// Tiles in shared memory are row-major with rows of kStride elements: an odd number of 16-byte chunks, so that eight
// rows lie in different banks.
#pragma once

#include <cuda_bf16.h>

#include "device/cuda/device.cuh"

namespace norma::cuda::attention {

__device__ __forceinline__ int lane_of() { return static_cast<int>(threadIdx.x) & (kWarp - 1); }

// Which lane of the warp thread (g, t) is.
struct MatrixLanes {               // as mma.m16n8 has it
  static constexpr int kStep = 1;  // from t to t + 1
  __device__ static __forceinline__ int g() { return lane_of() >> 2; }
  __device__ static __forceinline__ int t() { return lane_of() & 3; }
  __device__ static __forceinline__ int lane(int g, int t) { return 4 * g + t; }
};
// Neighbouring lanes share columns, so what they read of the second factor, most of what is read, is the same for both,
// which shared memory can serve together.
struct ColumnLanes {
  static constexpr int kStep = 8;
  __device__ static __forceinline__ int g() { return lane_of() & 7; }
  __device__ static __forceinline__ int t() { return lane_of() >> 3; }
  __device__ static __forceinline__ int lane(int g, int t) { return g + 8 * t; }
};

template <class Element>
__host__ __device__ constexpr int chunk_of() {
  return 16 / static_cast<int>(sizeof(Element));
}
template <class Element>
__host__ __device__ constexpr int stride_of(int width) {
  return width + chunk_of<Element>();
}

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Four 8 x 8 matrices of 16-bit elements (or 8 x 4 of 32 bits); lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}
__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}

__device__ __forceinline__ unsigned pack_pair(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

__device__ __forceinline__ unsigned round_to_tf32(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

template <int kM, int kN>
__device__ __forceinline__ void clear(float (&c)[kM][kN][4]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) c[m][n][i] = 0.0f;
    }
  }
}

struct Bf16Unit {
  using Element = __nv_bfloat16;
  __device__ static __forceinline__ void round(unsigned (&)[4]) {}
  __device__ static __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

struct Tf32Unit {
  using Element = float;
  __device__ static __forceinline__ void round(unsigned (&r)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) r[i] = round_to_tf32(__uint_as_float(r[i]));
  }
  __device__ static __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

// c += a b^T with a[16 kM, kDepth] and b[8 kN, kDepth] in shared memory.
template <class Unit, int kM, int kN, int kDepth, int kStride>
__device__ __forceinline__ void tensor_multiply_rows(float (&c)[kM][kN][4], const typename Unit::Element* a,
                                                     const typename Unit::Element* b) {
  constexpr int kChunk = chunk_of<typename Unit::Element>(), kStep = 2 * kChunk;  // depth of one mma
  const int lane = lane_of();
  const auto* const a_at = a + (lane & 15) * kStride + (lane >> 4) * kChunk;
  const auto* const b_at = b + ((lane & 7) + (lane >> 4) * 8) * kStride + ((lane >> 3) & 1) * kChunk;
#pragma unroll 8
  for (int k = 0; k < kDepth; k += kStep) {
    unsigned a_part[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      load_matrices(a_part[m], a_at + m * 16 * kStride + k);
      Unit::round(a_part[m]);
    }
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      unsigned b_part[4];
      load_matrices(b_part, b_at + n * 8 * kStride + k);
      Unit::round(b_part);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        Unit::mma(c[m][n], a_part[m], b_part[0], b_part[1]);
        Unit::mma(c[m][n + 1], a_part[m], b_part[2], b_part[3]);
      }
    }
  }
}

struct Bf16Math {
  using Element = __nv_bfloat16;
  using Lanes = MatrixLanes;
  static constexpr bool kTensorCores = true;

  template <int kM, int kN, int kDepth, int kStride>
  __device__ static __forceinline__ void multiply_rows(float (&c)[kM][kN][4], const Element* a, const Element* b) {
    tensor_multiply_rows<Bf16Unit, kM, kN, kDepth, kStride>(c, a, b);
  }

  // c += p b with p[16 kM, 8 kK] held as accumulators are, and b[8 kK, 8 kN] in shared memory.
  template <int kStride, int kM, int kK, int kN>
  __device__ static __forceinline__ void multiply_held(float (&c)[kM][kN][4], const float (&p)[kM][kK][4],
                                                       const Element* b) {
    const int lane = lane_of();
    const Element* const b_at = b + (lane & 15) * kStride + (lane >> 4) * 8;
#pragma unroll
    for (int k = 0; k < kK; k += 2) {
      unsigned a[kM][4];
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        a[m][0] = pack_pair(p[m][k][0], p[m][k][1]);
        a[m][1] = pack_pair(p[m][k][2], p[m][k][3]);
        a[m][2] = pack_pair(p[m][k + 1][0], p[m][k + 1][1]);
        a[m][3] = pack_pair(p[m][k + 1][2], p[m][k + 1][3]);
      }
#pragma unroll
      for (int n = 0; n < kN; n += 2) {
        unsigned b_part[4];
        load_matrices_transposed(b_part, b_at + k * 8 * kStride + n * 8);
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          Bf16Unit::mma(c[m][n], a[m], b_part[0], b_part[1]);
          Bf16Unit::mma(c[m][n + 1], a[m], b_part[2], b_part[3]);
        }
      }
    }
  }
};

struct Tf32Math {
  using Element = float;
  using Lanes = MatrixLanes;
  static constexpr bool kTensorCores = true;

  template <int kM, int kN, int kDepth, int kStride>
  __device__ static __forceinline__ void multiply_rows(float (&c)[kM][kN][4], const Element* a, const Element* b) {
    tensor_multiply_rows<Tf32Unit, kM, kN, kDepth, kStride>(c, a, b);
  }

  // As above. An mma takes columns t and t + 4 of a from thread t; a sum does not mind in which order its terms are
  // named, so these are columns 2 t and 2 t + 1 of p, which the thread has, and b is read in the same order.
  template <int kStride, int kM, int kK, int kN>
  __device__ static __forceinline__ void multiply_held(float (&c)[kM][kN][4], const float (&p)[kM][kK][4],
                                                       const Element* b) {
    const int lane = lane_of();
    const Element* const b_at = b + 2 * (lane & 3) * kStride + (lane >> 2);
#pragma unroll
    for (int k = 0; k < kK; ++k) {
      unsigned a[kM][4];
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        a[m][0] = round_to_tf32(p[m][k][0]);
        a[m][1] = round_to_tf32(p[m][k][2]);
        a[m][2] = round_to_tf32(p[m][k][1]);
        a[m][3] = round_to_tf32(p[m][k][3]);
      }
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const unsigned b0 = round_to_tf32(b_at[8 * k * kStride + 8 * n]);
        const unsigned b1 = round_to_tf32(b_at[(8 * k + 1) * kStride + 8 * n]);
#pragma unroll
        for (int m = 0; m < kM; ++m) Tf32Unit::mma(c[m][n], a[m], b0, b1);
      }
    }
  }
};

struct F32Math {
  using Element = float;
  using Lanes = ColumnLanes;
  static constexpr bool kTensorCores = false;

  template <int kM, int kN, int kDepth, int kStride>
  __device__ static __forceinline__ void multiply_rows(float (&c)[kM][kN][4], const Element* a, const Element* b) {
    const Element* const a_at = a + Lanes::g() * kStride;
    const Element* const b_at = b + 2 * Lanes::t() * kStride;
#pragma unroll 2
    for (int k = 0; k < kDepth; k += 4) {
      float4 x[kM][2];
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        x[m][0] = *reinterpret_cast<const float4*>(a_at + m * 16 * kStride + k);
        x[m][1] = *reinterpret_cast<const float4*>(a_at + (m * 16 + 8) * kStride + k);
      }
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float4 y = *reinterpret_cast<const float4*>(b_at + (n * 8 + e) * kStride + k);
#pragma unroll
          for (int m = 0; m < kM; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              float& sum = c[m][n][2 * half + e];
              sum = fmaf(x[m][half].x, y.x, sum);
              sum = fmaf(x[m][half].y, y.y, sum);
              sum = fmaf(x[m][half].z, y.z, sum);
              sum = fmaf(x[m][half].w, y.w, sum);
            }
          }
        }
      }
    }
  }

  template <int kStride, int kM, int kK, int kN>
  __device__ static __forceinline__ void multiply_held(float (&c)[kM][kN][4], const float (&p)[kM][kK][4],
                                                       const Element* b) {
    const Element* const b_at = b + 2 * Lanes::t();
#pragma unroll
    for (int k = 0; k < kK; ++k) {
#pragma unroll 2
      for (int t = 0; t < 4; ++t) {  // rows 8 k + 2 t and 8 k + 2 t + 1 of b; thread (g, t) has these columns of p
        const int from = Lanes::lane(Lanes::g(), t);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float weight[kM][2];
#pragma unroll
          for (int m = 0; m < kM; ++m) {
            weight[m][0] = __shfl_sync(kAll, p[m][k][e], from);
            weight[m][1] = __shfl_sync(kAll, p[m][k][2 + e], from);
          }
#pragma unroll
          for (int n = 0; n < kN; ++n) {
            const float2 y = *reinterpret_cast<const float2*>(b_at + (8 * k + 2 * t + e) * kStride + 8 * n);
#pragma unroll
            for (int m = 0; m < kM; ++m) {
              c[m][n][0] = fmaf(weight[m][0], y.x, c[m][n][0]);
              c[m][n][1] = fmaf(weight[m][0], y.y, c[m][n][1]);
              c[m][n][2] = fmaf(weight[m][1], y.x, c[m][n][2]);
              c[m][n][3] = fmaf(weight[m][1], y.y, c[m][n][3]);
            }
          }
        }
      }
    }
  }
};

// multiply_held where p is 0 because its column is hidden from its row, and b may hold infinities or NaN there, which
// 0 times would let through: such pairs are left out. sees(row, column), counted within p. Small rather than fast.
template <class Lanes, int kStride, int kM, int kK, int kN, class Element, class Sees>
__device__ __forceinline__ void multiply_seen(float (&c)[kM][kN][4], const float (&p)[kM][kK][4], const Element* b,
                                              const Sees& sees) {
#pragma unroll 1
  for (int k = 0; k < kK; ++k) {
    float mine[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        mine[m][i] = p[m][0][i];
#pragma unroll
        for (int other = 1; other < kK; ++other) mine[m][i] = other == k ? p[m][other][i] : mine[m][i];
      }
    }
#pragma unroll 1
    for (int i = 0; i < 8; ++i) {
      const Element* const b_at = b + (8 * k + i) * kStride + 2 * Lanes::t();
      const int from = Lanes::lane(Lanes::g(), i >> 1);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float weight = __shfl_sync(kAll, (i & 1) != 0 ? mine[m][2 * half + 1] : mine[m][2 * half], from);
          const bool seen = sees(m * 16 + half * 8 + Lanes::g(), 8 * k + i);
#pragma unroll
          for (int n = 0; n < kN; ++n) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              float& sum = c[m][n][2 * half + e];
              sum = seen ? fmaf(weight, load_one(b_at + 8 * n + e), sum) : sum;
            }
          }
        }
      }
    }
  }
}

}  // namespace norma::cuda::attention
