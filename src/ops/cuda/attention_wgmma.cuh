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

// Groups of 8 rows are 1024 bytes apart, chunks are swizzled over 128 bytes.
__device__ __forceinline__ std::uint64_t descriptor(const HopperTile* tile) {
  constexpr std::uint64_t kForm = std::uint64_t{1} << 62 | std::uint64_t{64} << 32 | std::uint64_t{1} << 16;
  return kForm | (shared_address(tile) & 0x3ffff) >> 4;
}
// What 16 steps along the depth of a product add to a descriptor: 32 bytes of a row, or 16 rows.
constexpr std::uint64_t kDepthByRows = 32 / 16, kDepthByColumns = 16 * kLine * 2 / 16;

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
__device__ __forceinline__ void settle(Accumulator& c) {
#pragma unroll
  for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(c[0][n][i])::"memory");
  }
}
// What this thread wrote to shared memory is visible to wgmma; a barrier makes it so for others.
__device__ __forceinline__ void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#define NORMA_ROW_OF(c, n) "+f"(c[0][n][0]), "+f"(c[0][n][1]), "+f"(c[0][n][2]), "+f"(c[0][n][3])
#define NORMA_ALL_OF(c)                                                                               \
  NORMA_ROW_OF(c, 0), NORMA_ROW_OF(c, 1), NORMA_ROW_OF(c, 2), NORMA_ROW_OF(c, 3), NORMA_ROW_OF(c, 4), \
      NORMA_ROW_OF(c, 5), NORMA_ROW_OF(c, 6), NORMA_ROW_OF(c, 7)
#define NORMA_WGMMA                                                                                       \
  "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "                                                 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "

// c = a b^T with a[64, 64] and b[64, 64] tiles.
__device__ __forceinline__ void issue_rows(Accumulator& c, const HopperTile* a, const HopperTile* b) {
  const std::uint64_t from_a = descriptor(a), from_b = descriptor(b);
#pragma unroll
  for (int k = 0; k < kDepthSteps; ++k) {
    NORMA_SM90A_ASM("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n" NORMA_WGMMA "%32, %33, p, 1, 1, 0, 0;\n}\n"
                    : NORMA_ALL_OF(c)
                    : "l"(from_a + k * kDepthByRows), "l"(from_b + k * kDepthByRows), "r"(k > 0 ? 1 : 0));
  }
}

// c += a b with a in registers.
__device__ __forceinline__ void issue_held(Accumulator& c, const Fragment& a, const HopperTile* b) {
  const std::uint64_t from_b = descriptor(b);
#pragma unroll
  for (int k = 0; k < kDepthSteps; ++k) {
    NORMA_SM90A_ASM(NORMA_WGMMA "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;\n"
                    : NORMA_ALL_OF(c)
                    : "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]), "r"(a[k][3]), "l"(from_b + k * kDepthByColumns));
  }
}

#undef NORMA_SM90A_ASM
#undef NORMA_WGMMA
#undef NORMA_ALL_OF
#undef NORMA_ROW_OF

// An accumulator as a first factor.
__device__ __forceinline__ void pack_fragment(Fragment& a, const Accumulator& c) {
#pragma unroll
  for (int k = 0; k < kDepthSteps; ++k) {
    a[k][0] = pack_pair(c[0][2 * k][0], c[0][2 * k][1]);
    a[k][1] = pack_pair(c[0][2 * k][2], c[0][2 * k][3]);
    a[k][2] = pack_pair(c[0][2 * k + 1][0], c[0][2 * k + 1][1]);
    a[k][3] = pack_pair(c[0][2 * k + 1][2], c[0][2 * k + 1][3]);
  }
}
// kRows rows of tiles = rows [begin, begin + kRows) of a head, zeros from row `end` on and beyond the head's width.
template <int kRows, int kThreads>
__device__ __forceinline__ void load_rows(HopperTile* tile, const HeadRows<const HopperTile>& from, int begin, int end,
                                          int width) {
  constexpr int kChunks = kSide / 8;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks, column = chunk * 8;
  const HopperTile* source = from.first + column + (begin + static_cast<int>(threadIdx.x) / kChunks) * from.row;
#pragma unroll
  for (int i = 0; i < kRows * kChunks / kThreads; ++i) {
    const int row = static_cast<int>(threadIdx.x) / kChunks + i * (kThreads / kChunks);
    const bool there = begin + row < end && column < width;
    copy_chunk(tile + swizzled(row, column), there ? source : from.first, there ? 16 : 0);
    source += kThreads / kChunks * from.row;
  }
}

}  // namespace norma::cuda::attention
