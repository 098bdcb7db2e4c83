// The backward pass for sequences up to 128 with wgmma, where the context is given and heads are few: a block has a
// head, and each of its warpgroups 64 keys. P^T and dS^T of 32 queries at a time are computed once, and dv and dk take
// them from registers. Then each warpgroup has 64 queries: dq takes dS from shared memory, where the others left it.
#pragma once

#include "ops/cuda/attention_hopper_whole_gradients.cuh"

namespace norma::cuda::attention {

constexpr int kHalf = kSide / 2;                 // queries at a time
constexpr unsigned kNextHalf = kNextTile / 2;    // from these to the next
constexpr int kHalfSteps = kHalf / 16;           // of a product over them
using HalfAccumulator = float[1][kHalf / 8][4];  // 64 keys x 32 queries
using HalfFragment = unsigned[kHalfSteps][4];

// Shared memory after the tiles of the head: tiles for dS^T of each 64 keys and 64 queries, then lse and delta of each
// query.
template <int kTiles>
constexpr std::int64_t whole_few_bytes() {
  return (4 * kTiles + kTiles * kTiles) * kTileBytes + 1024 +
         2 * kTiles * kSide * static_cast<std::int64_t>(sizeof(float));
}

template <class Math, int kWidth, int kTiles>
__global__ void __launch_bounds__(kTiles* kGroup, 4 / kTiles)
    hopper_whole_few_kernel(const __grid_constant__ AttentionCall call, Access access) {
  constexpr int kThreads = kTiles * kGroup;
  extern __shared__ __align__(1024) unsigned char memory[];
  std::byte* const member = base_of(call.members, blockIdx.y);
  const bool idle = skipped(call.members, blockIdx.y);  // known while rows are on their way
  const WholeHead<kWidth, kTiles, 1, kThreads> of(call, member, memory);
  constexpr int kRows = of.kRows;
  of.load(of.dc, context_rows<const HopperTile>(call, member, call.dcontext, of.sample, of.head), call.queries,
          call.width);
  const WholeDelta<kWidth, kTiles, kThreads> products(call, of);
  HopperTile* const ds_tiles = of.dc + kRows * kLine;
  float* const lse = reinterpret_cast<float*>(ds_tiles + kTiles * kTiles * kSide * kLine);
  float* const delta = lse + kRows;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kRows) {
    lse[thread] =
        thread < call.queries ? query_numbers(call, member, call.lse, of.sample, of.head)[thread] * kLog2E : 0.0f;
  }
  wait_for_copies();
  if (idle) return;
  products.write(of.dc, delta);
  publish();
  __syncthreads();

  const int group = kTiles > 1 ? __shfl_sync(kAll, thread / kGroup, 0) : 0;  // its tile of keys, and then of queries
  const int first = group * kSide + of.warp;
  const int row = first + MatrixLanes::g(), column = 2 * MatrixLanes::t();  // the thread's first, of keys and queries
  float dk[1][kWidth / 8][4], dv[1][kWidth / 8][4];
  clear(dk);
  clear(dv);
  const int halves = group < of.key_tiles ? 2 * of.query_tiles : 0;
#pragma unroll 1
  for (int half = of.causal ? 2 * group : 0; half < halves; ++half) {
    const int query = half * kHalf;
    HalfAccumulator p, dp;
    wait_for_products<0>();
    settle(dk);
    settle(dv);
    begin_products();
    issue_rows<kWidth>(p, of.tile_k(group), of.tile_q(0) + half * kNextHalf);
    commit_products();
    issue_rows<kWidth>(dp, of.tile_v(group), of.tile_dc(0) + half * kNextHalf);
    commit_products();
    wait_for_products<1>();
    settle(p);
    transposed_exponentials(p, call.scale * kLog2E, lse + query);
    // What is hidden is 0 in dS too, unless it is multiplied by infinities or NaN: see below.
    if (of.causal && query < (group + 1) * kSide) {
      const int diagonal = row - query - column;
      hide_where(p, [&](int r, int c) { return c < diagonal + r; });
    }
    if ((group + 1) * kSide > of.visible) {
      const int rows = of.visible - row;
      hide_where(p, [&](int r, int) { return r >= rows; });
    }
    if (query + kHalf > call.queries) {
      const int columns = call.queries - query - column;
      hide_where(p, [&](int, int c) { return c >= columns; });
    }
    wait_for_products<0>();
    settle(dp);
    transposed_gradients(p, dp, delta + query);
    HalfFragment held_p, held_ds;
    pack_fragment(held_p, p);
    pack_fragment(held_ds, dp);
    store_fragment(ds_tiles + (group * kTiles + half / 2) * kSide * kLine, of.warp, half % 2 * kHalf, held_ds);
    begin_products();
    issue_held(dv, held_p, of.tile_dc(0) + half * kNextHalf);
    issue_held(dk, held_ds, of.tile_q(0) + half * kNextHalf);
    commit_products();
  }
  wait_for_products<0>();
  settle(dk);
  settle(dv);
  publish();
  __syncthreads();

  float dq[1][kWidth / 8][4];
  clear(dq);
  settle(dq);
  begin_products();
  const int seen = group < of.query_tiles ? of.seen_tiles(group) : 0;
#pragma unroll 1
  for (int key = 0; key < seen; ++key) {
    issue_columns(dq, of.tile_q(4 * kTiles + key * kTiles + group), of.tile_k(key));
  }
  commit_products();
  if (call.dk >= 0) {
    store_rows(key_rows<HopperTile>(call, member, call.dk, of.sample, of.head), first, of.visible, call.keys,
               call.width, dk, call.scale, call.scale);
  }
  if (call.dv >= 0) {
    store_rows(key_rows<HopperTile>(call, member, call.dv, of.sample, of.head), first, of.visible, call.keys,
               call.width, dv, 1.0f, 1.0f);
  }
  wait_for_products<0>();
  settle(dq);
  if (call.dq >= 0) {
    store_rows(query_rows<HopperTile>(call, member, call.dq, of.sample, of.head), first,
               of.visible == 0 ? 0 : call.queries, call.queries, call.width, dq, call.scale, call.scale);
  }
  // Everything once more, for a head in which 0 times what is hidden was NaN, as in the longer passes.
  if (of.causal && __syncthreads_or(has_nan(dk) || has_nan(dv) || has_nan(dq)) != 0) {
    dq_block<Math, kWidth, 1, kHalf>(call, access, memory, static_cast<int>(blockIdx.x));
    __syncthreads();
    dkv_block<Math, kWidth, 1, kHalf>(call, access, memory, static_cast<int>(blockIdx.x));
  }
}

}  // namespace norma::cuda::attention
