// Matrix products of attention by a warpgroup (four warps) with wgmma, which reads tiles straight from shared memory:
// bf16 factors, sums in f32. Compute capability 9.0, built for sm_90a.
//
// A tile is [rows, 64] bf16, 128 bytes a row, in which the 16-byte chunk c of row r lies at chunk c ^ (r % 8), and
// begins at a multiple of 1024 bytes. Accumulators are those of attention_math.cuh: each warp has 16 of 64 rows.
#pragma once

#include "ops/cuda/attention_tile.cuh"

namespace norma::cuda::attention {

constexpr int kGroup = 4 * kWarp;              // threads of a warpgroup
constexpr int kSide = 64;                      // rows of a product; columns of a tile
constexpr int kLine = kSide;                   // elements from row to row
constexpr int kTileBytes = kSide * kLine * 2;  // of 64 rows
constexpr int kDepthSteps = kSide / 16;        // of a product over 64
using HopperTile = __nv_bfloat16;              // its first element
using Accumulator = float[1][kSide / 8][4];    // 64 x 64 over a warpgroup
using Fragment = unsigned[kDepthSteps][4];     // 64 x 64 as a first factor in registers

__device__ __forceinline__ HopperTile* aligned_tiles(unsigned char* memory) {
  const unsigned address = shared_address(memory);
  return reinterpret_cast<HopperTile*>(memory + ((1024 - (address & 1023)) & 1023));
}

__device__ __forceinline__ int swizzled(int row, int column) { return row * kLine + (column ^ ((row & 7) << 3)); }

// How wgmma is told of a tile: the lower half of its descriptor, in which addresses count 16 bytes. Groups of 8 rows
// are 1024 bytes apart, chunks are swizzled over 128 bytes. Tiles follow each other kNextTile apart.
__device__ __forceinline__ unsigned descriptor(const HopperTile* tile) {
  return 0x10000u | (shared_address(tile) & 0x3ffffu) >> 4;
}
constexpr unsigned kNextTile = kTileBytes / 16;
// What 16 steps along the depth of a product add: 32 bytes of a row, or 16 rows.
constexpr unsigned kDepthByRows = 32 / 16, kDepthByColumns = 16 * kLine * 2 / 16;

// The same code is also compiled for compute capability 9.0 without its special instructions, and never run.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define NORMA_SM90A_ASM(...) asm volatile(__VA_ARGS__)
#else
#define NORMA_SM90A_ASM(...) __trap()
#endif

// Registers of accumulators and fragments are ready; products may be issued.
__device__ __forceinline__ void begin_products() { NORMA_SM90A_ASM("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { NORMA_SM90A_ASM("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// All but the last kLeft commits have finished.
template <int kLeft>
__device__ __forceinline__ void wait_for_products() {
  NORMA_SM90A_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
// Keeps uses of c after the wait before this, and earlier ones ahead of it.
template <int kN>
__device__ __forceinline__ void settle(float (&c)[1][kN][4]) {
#pragma unroll
  for (int n = 0; n < kN; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(c[0][n][i])::"memory");
  }
}
// What this thread wrote to shared memory is visible to wgmma; a barrier makes it so for others.
__device__ __forceinline__ void publish() {
#if __CUDA_ARCH__ >= 900  // elsewhere this code is compiled and never run
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

#define NORMA_N8(c, n) "+f"(c[0][n][0]), "+f"(c[0][n][1]), "+f"(c[0][n][2]), "+f"(c[0][n][3])
#define NORMA_N16(c, n) NORMA_N8(c, n), NORMA_N8(c, n + 1)
#define NORMA_N32(c, n) NORMA_N16(c, n), NORMA_N16(c, n + 2)
#define NORMA_N64(c) NORMA_N32(c, 0), NORMA_N32(c, 4)
#define NORMA_DESCRIPTOR(name, low) ".reg .b64 " name ";\nmov.b64 " name ", {" low ", 0x40000040};\n"
#define NORMA_WGMMA(n) "wgmma.mma_async.sync.aligned.m64n" n "k16.f32.bf16.bf16 "
#define NORMA_C64                                                                                         \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "

// c = a b^T with a[64, kWidth] and b[64, kWidth] columns of tiles.
template <int kWidth = kSide>
__device__ __forceinline__ void issue_rows(Accumulator& c, unsigned a, unsigned b) {
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) {
    NORMA_SM90A_ASM("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n" NORMA_DESCRIPTOR("a", "%32")
                        NORMA_DESCRIPTOR("b", "%33") NORMA_WGMMA("64") NORMA_C64 "a, b, p, 1, 1, 0, 0;\n}\n"
                    : NORMA_N64(c)
                    : "r"(a + k * kDepthByRows), "r"(b + k * kDepthByRows), "r"(k > 0 ? 1 : 0));
  }
}

// And with b[32, kWidth] columns of a tile.
template <int kWidth = kSide>
__device__ __forceinline__ void issue_rows(float (&c)[1][4][4], unsigned a, unsigned b) {
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) {
    NORMA_SM90A_ASM(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n" NORMA_DESCRIPTOR("a", "%16") NORMA_DESCRIPTOR("b", "%17")
            NORMA_WGMMA("32") "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
                              "a, b, p, 1, 1, 0, 0;\n}\n"
        : NORMA_N32(c, 0)
        : "r"(a + k * kDepthByRows), "r"(b + k * kDepthByRows), "r"(k > 0 ? 1 : 0));
  }
}

// c += a b with a[64, 16 kSteps] in registers and b[16 kSteps, 8 kN] columns of a tile.
template <int kN, int kSteps>
__device__ __forceinline__ void issue_held(float (&c)[1][kN][4], const unsigned (&a)[kSteps][4], unsigned b) {
  static_assert(kN == 2 || kN == 4 || kN == 8);
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    if constexpr (kN == 8) {
      NORMA_SM90A_ASM("{\n" NORMA_DESCRIPTOR("b", "%36") NORMA_WGMMA("64") NORMA_C64
                      "{%32, %33, %34, %35}, b, 1, 1, 1, 1;\n}\n"
                      : NORMA_N64(c)
                      : "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]), "r"(a[k][3]), "r"(b + k * kDepthByColumns));
    } else if constexpr (kN == 4) {
      NORMA_SM90A_ASM("{\n" NORMA_DESCRIPTOR("b", "%20") NORMA_WGMMA(
                          "32") "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
                                "{%16, %17, %18, %19}, b, 1, 1, 1, 1;\n}\n"
                      : NORMA_N32(c, 0)
                      : "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]), "r"(a[k][3]), "r"(b + k * kDepthByColumns));
    } else {
      NORMA_SM90A_ASM("{\n" NORMA_DESCRIPTOR("b", "%12")
                          NORMA_WGMMA("16") "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, b, 1, 1, 1, 1;\n}\n"
                      : NORMA_N16(c, 0)
                      : "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]), "r"(a[k][3]), "r"(b + k * kDepthByColumns));
    }
  }
}

// c += a b^T with a in registers and b[64, 64] a tile.
__device__ __forceinline__ void issue_held_rows(Accumulator& c, const Fragment& a, unsigned b) {
#pragma unroll
  for (int k = 0; k < kDepthSteps; ++k) {
    NORMA_SM90A_ASM("{\n" NORMA_DESCRIPTOR("b", "%36") NORMA_WGMMA("64") NORMA_C64
                    "{%32, %33, %34, %35}, b, 1, 1, 1, 0;\n}\n"
                    : NORMA_N64(c)
                    : "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]), "r"(a[k][3]), "r"(b + k * kDepthByRows));
  }
}

// c += a^T b with a[64, 64] and b[64, 8 kN] columns of tiles, whose rows are the depth.
template <int kN>
__device__ __forceinline__ void issue_columns(float (&c)[1][kN][4], unsigned a, unsigned b) {
  static_assert(kN == 2 || kN == 4 || kN == 8);
#pragma unroll
  for (int k = 0; k < kDepthSteps; ++k) {
    if constexpr (kN == 8) {
      NORMA_SM90A_ASM("{\n" NORMA_DESCRIPTOR("a", "%32") NORMA_DESCRIPTOR("b", "%33") NORMA_WGMMA("64") NORMA_C64
                      "a, b, 1, 1, 1, 1, 1;\n}\n"
                      : NORMA_N64(c)
                      : "r"(a + k * kDepthByColumns), "r"(b + k * kDepthByColumns));
    } else if constexpr (kN == 4) {
      NORMA_SM90A_ASM("{\n" NORMA_DESCRIPTOR("a", "%16") NORMA_DESCRIPTOR("b", "%17") NORMA_WGMMA(
                          "32") "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
                                "a, b, 1, 1, 1, 1, 1;\n}\n"
                      : NORMA_N32(c, 0)
                      : "r"(a + k * kDepthByColumns), "r"(b + k * kDepthByColumns));
    } else {
      NORMA_SM90A_ASM("{\n" NORMA_DESCRIPTOR("a", "%8") NORMA_DESCRIPTOR("b", "%9")
                          NORMA_WGMMA("16") "{%0, %1, %2, %3, %4, %5, %6, %7}, a, b, 1, 1, 1, 1, 1;\n}\n"
                      : NORMA_N16(c, 0)
                      : "r"(a + k * kDepthByColumns), "r"(b + k * kDepthByColumns));
    }
  }
}

#undef NORMA_SM90A_ASM
#undef NORMA_C64
#undef NORMA_DESCRIPTOR
#undef NORMA_WGMMA
#undef NORMA_N64
#undef NORMA_N32
#undef NORMA_N16
#undef NORMA_N8

// An accumulator as a first factor.
template <int kSteps>
__device__ __forceinline__ void pack_fragment(unsigned (&a)[kSteps][4], const float (&c)[1][2 * kSteps][4]) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    a[k][0] = pack_pair(c[0][2 * k][0], c[0][2 * k][1]);
    a[k][1] = pack_pair(c[0][2 * k][2], c[0][2 * k][3]);
    a[k][2] = pack_pair(c[0][2 * k + 1][0], c[0][2 * k + 1][1]);
    a[k][3] = pack_pair(c[0][2 * k + 1][2], c[0][2 * k + 1][3]);
  }
}

// Rows of a head on their way into tiles, kRows after kRows, kWidth columns of each; zeros where there are none and
// beyond the head's width.
template <int kRows, int kThreads, int kWidth = kSide>
class RowLoader {
 public:
  __device__ __forceinline__ RowLoader(const HeadRows<const HopperTile>& from, int begin, int end, int width) {
    const int column = static_cast<int>(threadIdx.x) % kChunks * 8, row = static_cast<int>(threadIdx.x) / kChunks;
    source_ = from.first + column + (begin + row) * from.row;
    step_ = kPass * from.row;
    left_ = column < width ? end - begin - row : 0;
    to_ = static_cast<unsigned>(swizzled(row, column)) * 2;
  }
  __device__ __forceinline__ void load(const HopperTile* tile) {
    const unsigned to = shared_address(tile) + to_;
#pragma unroll
    for (int i = 0; i < kRows / kPass; ++i) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + i * kPass * kLine * 2), "l"(source_),
                   "r"(i * kPass < left_ ? 16 : 0)
                   : "memory");
      source_ += step_;
    }
    left_ -= kRows;
  }

 private:
  static constexpr int kChunks = kWidth / 8, kPass = kThreads / kChunks;  // rows at a time
  static_assert(kPass % 8 == 0 && kRows % kPass == 0);
  const HopperTile* source_;  // where nothing is left: anywhere, and not read
  std::int64_t step_;
  int left_;
  unsigned to_;
};

// Each thread of a row has two columns of every eight; afterwards it has all of one eight, as 16 bytes.
__device__ __forceinline__ uint4 gather_eight(const unsigned (&mine)[4]) {
  const bool odd = (MatrixLanes::t() & 1) != 0, high = (MatrixLanes::t() & 2) != 0;
  const unsigned a = __shfl_xor_sync(kAll, odd ? mine[0] : mine[1], 1);
  const unsigned b = __shfl_xor_sync(kAll, odd ? mine[2] : mine[3], 1);
  const unsigned x0 = odd ? a : mine[0], x1 = odd ? mine[1] : a, x2 = odd ? b : mine[2], x3 = odd ? mine[3] : b;
  const unsigned c = __shfl_xor_sync(kAll, high ? x0 : x2, 2), d = __shfl_xor_sync(kAll, high ? x1 : x3, 2);
  return high ? make_uint4(c, d, x2, x3) : make_uint4(x0, x1, c, d);
}

// store_tile in 16-byte accesses.
template <int kN>
__device__ __forceinline__ void store_rows(const HeadRows<HopperTile>& to, int begin, int live, int end, int width,
                                           const float (&c)[1][kN][4], float low, float high) {
  using Lanes = MatrixLanes;
  if constexpr (kN < 4) {
    const float factor[1][2] = {{low, high}};
    store_tile<Lanes>(to, begin, live, end, 0, width, Access::chunks, c, factor);
  } else {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = begin + half * 8 + Lanes::g();
      const float factor = half == 0 ? low : high;
      HopperTile* const line = to.first + row * to.row + Lanes::t() * 8;
#pragma unroll
      for (int n = 0; n + 4 <= kN; n += 4) {
        unsigned mine[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          mine[i] = row < live ? pack_pair(c[0][n + i][2 * half] * factor, c[0][n + i][2 * half + 1] * factor) : 0u;
        }
        const uint4 eight = gather_eight(mine);
        if (row < end && (n + Lanes::t()) * 8 < width) *reinterpret_cast<uint4*>(line + n * 8) = eight;
      }
    }
  }
}

}  // namespace norma::cuda::attention
