// The gradients by keys and values of attention_dkv.cuh with wgmma: a warpgroup has 64 keys of one key-value head.
// Three blocks share a multiprocessor, so that products of one run while another computes exponentials.
#pragma once

#include "ops/cuda/attention_dkv.cuh"
#include "ops/cuda/attention_wgmma.cuh"

namespace norma::cuda::attention {

// Scores, transposed, become P^T; lse (in powers of 2) of each column is in shared memory.
template <int kN>
__device__ __forceinline__ void transposed_exponentials(float (&p)[1][kN][4], float factor, const float* lse) {
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    const float2 l = *reinterpret_cast<const float2*>(lse + n * 8 + 2 * MatrixLanes::t());
#pragma unroll
    for (int i = 0; i < 4; ++i) p[0][n][i] = power_of_two(fmaf(p[0][n][i], factor, (i & 1) != 0 ? -l.y : -l.x));
  }
}
// dP^T becomes dS^T.
template <int kN>
__device__ __forceinline__ void transposed_gradients(const float (&p)[1][kN][4], float (&dp)[1][kN][4],
                                                     const float* delta) {
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    const float2 d = *reinterpret_cast<const float2*>(delta + n * 8 + 2 * MatrixLanes::t());
#pragma unroll
    for (int i = 0; i < 4; ++i) dp[0][n][i] = p[0][n][i] * (dp[0][n][i] - ((i & 1) != 0 ? d.y : d.x));
  }
}
// 0 where column - row < least or column >= columns, counted within the tile.
template <class Lanes>
__device__ __forceinline__ void hide_transposed(Accumulator& p, Accumulator& ds, int least, int columns) {
  const int begin = Lanes::g() + least - 2 * Lanes::t(), end = columns - 2 * Lanes::t();
#pragma unroll
  for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = n * 8 + (i & 1);
      if (column < begin + (i >> 1) * 8 || column >= end) p[0][n][i] = ds[0][n][i] = 0.0f;
    }
  }
}

template <class Math>
__global__ void __launch_bounds__(kGroup, 3)
    hopper_dkv_kernel(const __grid_constant__ AttentionCall call, Access access) {
  using Lanes = MatrixLanes;
  extern __shared__ __align__(1024) unsigned char memory[];
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const int blocks = (call.keys + kSide - 1) / kSide, pair = static_cast<int>(blockIdx.x) / blocks;
  const int first = static_cast<int>(blockIdx.x) % blocks * kSide;  // most work under a mask: the first
  const int sample = pair / call.kv_heads, kv_head = pair % call.kv_heads, group = call.heads / call.kv_heads;
  const int warp_first = first + static_cast<int>(threadIdx.x) / kWarp * 16;
  const bool causal = call.mask == KeyMask::causal;
  const int visible = visible_keys(call, member, sample);
  const int skipped = causal ? first / kSide : 0;  // tiles of queries that see none of these keys
  const int tiles = (call.queries + kSide - 1) / kSide - skipped;
  const int steps = first < visible ? group * tiles : 0;  // head by head

  // Tiles: keys, values, then pairs of queries and gradients by the context.
  HopperTile* const k_tile = aligned_tiles(memory);
  const auto pair_of = [](int step) { return 2 + 2 * (step & 1); };
  float* const numbers = reinterpret_cast<float*>(k_tile + 6 * kSide * kLine);
  const auto lse_of = [&](int step) { return numbers + (step & 1) * 2 * kSide; };
  const auto delta_of = [&](int step) { return lse_of(step) + kSide; };
  const auto q_loader = [&](int head) {
    return RowLoader<kSide, kGroup>(query_rows<const HopperTile>(call, member, call.q, sample, head), skipped * kSide,
                                    call.queries, call.width);
  };
  const auto dc_loader = [&](int head) {
    return RowLoader<kSide, kGroup>(context_rows<const HopperTile>(call, member, call.dcontext, sample, head),
                                    skipped * kSide, call.queries, call.width);
  };
  int next_head = kv_head * group, next_tile = skipped;  // to be loaded
  RowLoader<kSide, kGroup> q = q_loader(next_head), dc = dc_loader(next_head);
  const auto load = [&](int step) {
    if (next_tile == skipped + tiles) {
      next_tile = skipped;
      ++next_head;
      q = q_loader(next_head);
      dc = dc_loader(next_head);
    }
    q.load(k_tile + pair_of(step) * kSide * kLine);
    dc.load(k_tile + (pair_of(step) + 1) * kSide * kLine);
    const int i = static_cast<int>(threadIdx.x) % kSide, row = next_tile * kSide + i;
    const bool there = row < call.queries;
    if (static_cast<int>(threadIdx.x) < kSide) {
      lse_of(step)[i] = there ? query_numbers(call, member, call.lse, sample, next_head)[row] * kLog2E : 0.0f;
    } else {
      delta_of(step)[i] = there ? query_numbers(call, member, call.scratch, sample, next_head)[row] : 0.0f;
    }
    ++next_tile;
  };
  RowLoader<kSide, kGroup>(key_rows<const HopperTile>(call, member, call.k, sample, kv_head), first, visible,
                           call.width)
      .load(k_tile);
  RowLoader<kSide, kGroup>(key_rows<const HopperTile>(call, member, call.v, sample, kv_head), first, visible,
                           call.width)
      .load(k_tile + kSide * kLine);

  Accumulator p, dp, dk, dv;
  clear(dk);
  clear(dv);
  const unsigned tiles_at = descriptor(k_tile);
  if (steps > 0) load(0);
  int tile = skipped;
  for (int step = 0; step < steps; ++step) {
    wait_for_products<0>();
    settle(dk);
    settle(dv);
    wait_for_copies();
    publish();
    __syncthreads();
    begin_products();
    issue_rows(p, tiles_at, tiles_at + pair_of(step) * kNextTile);
    commit_products();
    issue_rows(dp, tiles_at + kNextTile, tiles_at + (pair_of(step) + 1) * kNextTile);
    commit_products();
    if (step + 1 < steps) load(step + 1);
    const int query = tile * kSide, diagonal = warp_first - query;  // column - row >= diagonal: seen
    if (++tile == skipped + tiles) tile = skipped;
    const bool hides = (causal && diagonal > 1 - 16) || query + kSide > call.queries;
    wait_for_products<1>();
    settle(p);
    transposed_exponentials(p, call.scale * kLog2E, lse_of(step));
    wait_for_products<0>();
    settle(dp);
    transposed_gradients(p, dp, delta_of(step));
    if (hides) hide_transposed<Lanes>(p, dp, causal ? diagonal : -kSide, call.queries - query);
    Fragment held_p, held_ds;
    pack_fragment(held_p, p);
    pack_fragment(held_ds, dp);
    begin_products();
    issue_held(dv, held_p, tiles_at + (pair_of(step) + 1) * kNextTile);
    issue_held(dk, held_ds, tiles_at + pair_of(step) * kNextTile);
    commit_products();
  }
  wait_for_products<0>();
  settle(dk);
  settle(dv);
  if (causal && __syncthreads_or(has_nan(dk) || has_nan(dv)) != 0) {  // as in the forward pass
    dkv_block<Math, kSide, 1, 32>(call, access, memory, static_cast<int>(blockIdx.x));
    return;
  }
  if (call.dk >= 0) {
    store_rows(key_rows<HopperTile>(call, member, call.dk, sample, kv_head), warp_first, visible, call.keys, call.width,
               dk, call.scale, call.scale);
  }
  if (call.dv >= 0) {
    store_rows(key_rows<HopperTile>(call, member, call.dv, sample, kv_head), warp_first, visible, call.keys, call.width,
               dv, 1.0f, 1.0f);
  }
}

}  // namespace norma::cuda::attention
