// A head of a short sequence in one block, for both passes: its queries, keys and values are all in shared memory. A
// warpgroup has the head, or, where heads are few, one tile of it, and others of this or another block the other tiles.
#pragma once

#include "ops/cuda/attention_wgmma.cuh"

namespace norma::cuda::attention {

// A head in a block, kTiles tiles of 64 rows each of queries, keys, values and, at last, gradients by the context.
template <int kWidth, int kTiles, int kParts, int kThreads = kGroup>
struct WholeHead {
  static constexpr int kRows = kTiles * kSide;
  std::byte* member;
  int sample, head, visible, key_tiles, query_tiles;
  bool causal;
  HopperTile *q, *k, *v, *dc;
  unsigned tiles_at;
  int warp = static_cast<int>(threadIdx.x) % kGroup / kWarp * 16;  // its first row of a tile
  int part = static_cast<int>(blockIdx.x) % kParts;                // its first tile; from one to the next are kParts

  __device__ __forceinline__ WholeHead(const AttentionCall& call, std::byte* of, unsigned char* memory)
      : member(of),
        sample(static_cast<int>(blockIdx.x) / kParts / call.heads),
        head(static_cast<int>(blockIdx.x) / kParts % call.heads),
        visible(visible_keys(call, of, sample)),
        key_tiles((visible + kSide - 1) / kSide),
        query_tiles((call.queries + kSide - 1) / kSide),
        causal(call.mask == KeyMask::causal),
        q(aligned_tiles(memory)),
        k(q + kRows * kLine),
        v(k + kRows * kLine),
        dc(v + kRows * kLine),
        tiles_at(descriptor(q)) {
    load(q, query_rows<const HopperTile>(call, member, call.q, sample, head), call.queries, call.width);
    load(k, key_rows<const HopperTile>(call, member, call.k, sample, head), visible, call.width);
    load(v, key_rows<const HopperTile>(call, member, call.v, sample, head), visible, call.width);
  }
  __device__ __forceinline__ static void load(HopperTile* to, const HeadRows<const HopperTile>& from, int end,
                                              int width) {
    RowLoader<kRows, kThreads, kWidth>(from, 0, end, width).load(to);
  }
  __device__ __forceinline__ static void arrive() {
    wait_for_copies();
    publish();
    __syncthreads();
  }
  __device__ __forceinline__ unsigned tile_q(int tile) const { return tiles_at + tile * kNextTile; }
  __device__ __forceinline__ unsigned tile_k(int tile) const { return tile_q(kTiles + tile); }
  __device__ __forceinline__ unsigned tile_v(int tile) const { return tile_q(2 * kTiles + tile); }
  __device__ __forceinline__ unsigned tile_dc(int tile) const { return tile_q(3 * kTiles + tile); }
  // Tiles of keys that a tile of queries sees.
  __device__ __forceinline__ int seen_tiles(int query_tile) const {
    return causal ? min(key_tiles, query_tile + 1) : key_tiles;
  }
  __device__ __forceinline__ bool hides(int query_tile, int key_tile) const {
    return (causal && query_tile == key_tile) || (key_tile + 1) * kSide > visible;
  }
  // For row - column >= diagonal, of a warp's rows of one tile and the columns of another.
  __device__ __forceinline__ int diagonal(int row_tile, int column_tile) const {
    return (column_tile - row_tile) * kSide - warp;
  }
};

}  // namespace norma::cuda::attention
