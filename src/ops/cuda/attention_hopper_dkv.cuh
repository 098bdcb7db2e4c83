// The gradients by keys and values of attention_dkv.cuh with wgmma: a warpgroup has 64 keys of one key-value head.
// Three blocks share a multiprocessor, so that products of one run while another computes exponentials.
#pragma once

#include "ops/cuda/attention_dkv.cuh"
#include "ops/cuda/attention_wgmma.cuh"

namespace norma::cuda::attention {

// Scores, transposed, become P^T; lse (in powers of 2) of each column is in shared memory.
__device__ __forceinline__ void transposed_exponentials(Accumulator& p, float factor, const float* lse) {
#pragma unroll
  for (int n = 0; n < kSide / 8; ++n) {
    const float2 l = *reinterpret_cast<const float2*>(lse + n * 8 + 2 * MatrixLanes::t());
#pragma unroll
    for (int i = 0; i < 4; ++i) p[0][n][i] = power_of_two(fmaf(p[0][n][i], factor, (i & 1) != 0 ? -l.y : -l.x));
  }
}
// dP^T becomes dS^T.
__device__ __forceinline__ void transposed_gradients(const Accumulator& p, Accumulator& dp, const float* delta) {
#pragma unroll
  for (int n = 0; n < kSide / 8; ++n) {
    const float2 d = *reinterpret_cast<const float2*>(delta + n * 8 + 2 * MatrixLanes::t());
#pragma unroll
    for (int i = 0; i < 4; ++i) dp[0][n][i] = p[0][n][i] * (dp[0][n][i] - ((i & 1) != 0 ? d.y : d.x));
  }
}
// 0 where column - row < least or column >= columns, counted within the tile.
template <class Lanes>
__device__ __forceinline__ void hide_transposed(Accumulator& c, int least, int columns) {
#pragma unroll
  for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = (i >> 1) * 8 + Lanes::g(), column = n * 8 + 2 * Lanes::t() + (i & 1);
      if (column - row < least || column >= columns) c[0][n][i] = 0.0f;
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

  HopperTile* const k_tile = aligned_tiles(memory);
  HopperTile* const v_tile = k_tile + kSide * kLine;
  const auto q_tile = [&](int step) { return k_tile + (2 + 2 * (step & 1)) * kSide * kLine; };
  const auto dc_tile = [&](int step) { return q_tile(step) + kSide * kLine; };
  float* const numbers = reinterpret_cast<float*>(k_tile + 6 * kSide * kLine);
  const auto lse_of = [&](int step) { return numbers + (step & 1) * 2 * kSide; };
  const auto delta_of = [&](int step) { return lse_of(step) + kSide; };
  const auto load = [&](int step) {
    const int head = kv_head * group + step / tiles, begin = (skipped + step % tiles) * kSide;
    load_rows<kSide, kGroup>(q_tile(step), query_rows<const HopperTile>(call, member, call.q, sample, head), begin,
                             call.queries, call.width);
    load_rows<kSide, kGroup>(dc_tile(step), context_rows<const HopperTile>(call, member, call.dcontext, sample, head),
                             begin, call.queries, call.width);
    const int i = static_cast<int>(threadIdx.x) % kSide, row = begin + i;
    const bool there = row < call.queries;
    if (static_cast<int>(threadIdx.x) < kSide) {
      lse_of(step)[i] = there ? query_numbers(call, member, call.lse, sample, head)[row] * kLog2E : 0.0f;
    } else {
      delta_of(step)[i] = there ? query_numbers(call, member, call.scratch, sample, head)[row] : 0.0f;
    }
  };
  load_rows<kSide, kGroup>(k_tile, key_rows<const HopperTile>(call, member, call.k, sample, kv_head), first, visible,
                           call.width);
  load_rows<kSide, kGroup>(v_tile, key_rows<const HopperTile>(call, member, call.v, sample, kv_head), first, visible,
                           call.width);

  Accumulator p, dp, dk, dv;
  clear(dk);
  clear(dv);
  if (steps > 0) load(0);
  for (int step = 0; step < steps; ++step) {
    wait_for_products<0>();
    settle(dk);
    settle(dv);
    wait_for_copies();
    publish();
    __syncthreads();
    begin_products();
    issue_rows(p, k_tile, q_tile(step));
    commit_products();
    issue_rows(dp, v_tile, dc_tile(step));
    commit_products();
    if (step + 1 < steps) load(step + 1);
    const int query = (skipped + step % tiles) * kSide,
              diagonal = warp_first - query;  // column - row >= diagonal: seen
    const bool hides = (causal && diagonal > 1 - 16) || query + kSide > call.queries;
    wait_for_products<1>();
    settle(p);
    transposed_exponentials(p, call.scale * kLog2E, lse_of(step));
    wait_for_products<0>();
    settle(dp);
    transposed_gradients(p, dp, delta_of(step));
    if (hides) {
      hide_transposed<Lanes>(p, causal ? diagonal : -kSide, call.queries - query);
      hide_transposed<Lanes>(dp, causal ? diagonal : -kSide, call.queries - query);
    }
    Fragment held_p, held_ds;
    pack_fragment(held_p, p);
    pack_fragment(held_ds, dp);
    begin_products();
    issue_held(dv, held_p, dc_tile(step));
    issue_held(dk, held_ds, q_tile(step));
    commit_products();
  }
  wait_for_products<0>();
  settle(dk);
  settle(dv);
  if (causal && __syncthreads_or(has_nan(dk) || has_nan(dv)) != 0) {  // as in the forward pass
    dkv_block<Math, kSide, 1, 32>(call, access, memory);
    return;
  }
  const float scale[1][2] = {{call.scale, call.scale}}, one[1][2] = {{1.0f, 1.0f}};
  if (call.dk >= 0) {
    store_tile<Lanes>(key_rows<HopperTile>(call, member, call.dk, sample, kv_head), warp_first, visible, call.keys, 0,
                      call.width, Access::chunks, dk, scale);
  }
  if (call.dv >= 0) {
    store_tile<Lanes>(key_rows<HopperTile>(call, member, call.dv, sample, kv_head), warp_first, visible, call.keys, 0,
                      call.width, Access::chunks, dv, one);
  }
}

inline int launch_hopper_dkv(const AttentionCall& call, Stream stream) {
  constexpr std::int64_t kNumbers = 4 * kSide * 4;
  constexpr std::int64_t kShared = 6 * kTileBytes + 1024 + kNumbers;
  static_assert(kShared >= 4 * kSide * stride_of<HopperTile>(kSide) * 2 + kNumbers);  // of the careful way
  return launch_kernel(hopper_dkv_kernel<Bf16Math>,
                       std::int64_t{call.batch} * call.kv_heads * divide_up(call.keys, kSide), kGroup, kShared, call,
                       Access::chunks, stream);
}

}  // namespace norma::cuda::attention
