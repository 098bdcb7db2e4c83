// The backward pass for sequences up to 128 with wgmma: first 64 queries at a time (P, delta, dS and dq), then 64 keys
// at a time, with P^T and dS^T computed again rather than turned over through shared memory.
#pragma once

#include "ops/cuda/attention_hopper_dkv.cuh"
#include "ops/cuda/attention_hopper_dq.cuh"
#include "ops/cuda/attention_hopper_head.cuh"

namespace norma::cuda::attention {

// dS = P (dP - delta) as a first factor, from P as one.
__device__ __forceinline__ void finish_fragment(Fragment& p, const Accumulator& dp, const float (&delta)[2]) {
#pragma unroll
  for (int k = 0; k < kDepthSteps; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 both = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&p[k][i]));
      const float* const d = &dp[0][2 * k + (i >> 1)][2 * (i & 1)];
      p[k][i] = pack_pair(both.x * (d[0] - delta[i & 1]), both.y * (d[1] - delta[i & 1]));
    }
  }
}

// delta, the sum over a row of context times its gradient, of all rows, by all threads of the block: what parts of a
// head know of each other.
template <int kWidth, int kTiles, int kParts>
__device__ __forceinline__ void whole_delta(const AttentionCall& call, const WholeHead<kWidth, kTiles, kParts>& of,
                                            float* delta) {
  constexpr int kLanes = kWidth / 8, kPass = kGroup / kLanes;  // of a row, 8 elements each; rows at a time
  const HeadRows<const HopperTile> context =
      context_rows<const HopperTile>(call, of.member, call.context, of.sample, of.head);
  const HeadRows<const HopperTile> gradient =
      context_rows<const HopperTile>(call, of.member, call.dcontext, of.sample, of.head);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
#pragma unroll
  for (int first = 0; first < of.kRows; first += kPass) {
    const int row = first + static_cast<int>(threadIdx.x) / kLanes;
    float sum = 0.0f;
    if (row < call.queries && lane * 8 < call.width) {
      float a[8], b[8];
      load<HopperTile, 8>(context.first + row * context.row + lane * 8, a);
      load<HopperTile, 8>(gradient.first + row * gradient.row + lane * 8, b);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum = fmaf(a[j], b[j], sum);
    }
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance >>= 1) sum += __shfl_xor_sync(kAll, sum, distance);
    if (lane == 0 && row < of.kRows) delta[row] = sum;
  }
}

// dq of a tile of queries. Where a block has the whole head, delta of its rows is found here and left in shared memory.
// Whether there is a NaN in it. One tile of keys after the other, and P rounded at once, because registers hold no
// more.
template <int kWidth, int kTiles, int kParts>
__device__ __forceinline__ bool whole_dq(const AttentionCall& call, const WholeHead<kWidth, kTiles, kParts>& of,
                                         int tile, const float* lse_of, float* delta_of) {
  using Lanes = MatrixLanes;
  const int row = tile * kSide + of.warp + Lanes::g(), seen = of.seen_tiles(tile);
  const float lse[2] = {lse_of[row], lse_of[row + 8]};
  constexpr bool kKnown = kParts > 1;
  float delta[2] = {0.0f, 0.0f};
  if (kKnown) {
    delta[0] = delta_of[row];
    delta[1] = delta_of[row + 8];
  }
  Accumulator p[kTiles], dp[kTiles];
  Fragment ds[kTiles];
#pragma unroll
  for (int key = 0; key < kTiles; ++key) {
    if (key >= seen) continue;
    begin_products();
    issue_rows<kWidth>(p[key], of.tile_q(tile), of.tile_k(key));
    commit_products();
    issue_rows<kWidth>(dp[key], of.tile_dc(tile), of.tile_v(key));
    commit_products();
    wait_for_products<1>();
    settle(p[key]);
    exponentials(p[key], call.scale * kLog2E, lse);
    wait_for_products<0>();
    settle(dp[key]);
    if (of.hides(tile, key)) {
      hide<Lanes>(p[key], dp[key], of.causal ? of.diagonal(tile, key) : -kSide, of.visible - key * kSide);
    }
    if (!kKnown) {
#pragma unroll
      for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) delta[i >> 1] = fmaf(p[key][0][n][i], dp[key][0][n][i], delta[i >> 1]);
      }
    }
    pack_fragment(ds[key], p[key]);
  }
  if (!kKnown) {
    delta[0] = row_sum<Lanes>(delta[0]);
    delta[1] = row_sum<Lanes>(delta[1]);
    if (Lanes::t() == 0) {
      delta_of[row] = delta[0];
      delta_of[row + 8] = delta[1];
    }
  }
  if (call.dq < 0) return false;
  float dq[1][kWidth / 8][4];
  clear(dq);
#pragma unroll
  for (int key = 0; key < kTiles; ++key) {
    if (key >= seen) continue;
    finish_fragment(ds[key], dp[key], delta);
    settle(dq);
    begin_products();
    issue_held(dq, ds[key], of.tile_k(key));
    commit_products();
    wait_for_products<0>();
    settle(dq);
  }
  store_rows(query_rows<HopperTile>(call, of.member, call.dq, of.sample, of.head), tile * kSide + of.warp,
             of.visible == 0 ? 0 : call.queries, call.queries, call.width, dq, call.scale, call.scale);
  return has_nan(dq);
}

// dk and dv of a tile of keys.
template <int kWidth, int kTiles, int kParts>
__device__ __forceinline__ bool whole_dkv(const AttentionCall& call, const WholeHead<kWidth, kTiles, kParts>& of,
                                          int tile, const float* lse, const float* delta) {
  float dk[1][kWidth / 8][4], dv[1][kWidth / 8][4];
  clear(dk);
  clear(dv);
  const int first = tile * kSide + of.warp;
  const int end = tile < of.key_tiles ? of.query_tiles : 0;
  for (int query = of.causal ? tile : 0; query < end; ++query) {
    Accumulator p, dp;
    wait_for_products<0>();
    settle(dk);
    settle(dv);
    begin_products();
    issue_rows<kWidth>(p, of.tile_k(tile), of.tile_q(query));
    commit_products();
    issue_rows<kWidth>(dp, of.tile_v(tile), of.tile_dc(query));
    commit_products();
    wait_for_products<1>();
    settle(p);
    transposed_exponentials(p, call.scale * kLog2E, lse + query * kSide);
    wait_for_products<0>();
    settle(dp);
    transposed_gradients(p, dp, delta + query * kSide);
    if ((of.causal && query == tile) || (query + 1) * kSide > call.queries) {
      const int least = of.causal ? first - query * kSide : -kSide, columns = call.queries - query * kSide;
      hide_transposed<MatrixLanes>(p, dp, least, columns);
    }
    Fragment held_p, held_ds;
    pack_fragment(held_p, p);
    pack_fragment(held_ds, dp);
    begin_products();
    issue_held(dv, held_p, of.tile_dc(query));
    issue_held(dk, held_ds, of.tile_q(query));
    commit_products();
  }
  wait_for_products<0>();
  settle(dk);
  settle(dv);
  if (call.dk >= 0) {
    store_rows(key_rows<HopperTile>(call, of.member, call.dk, of.sample, of.head), first, of.visible, call.keys,
               call.width, dk, call.scale, call.scale);
  }
  if (call.dv >= 0) {
    store_rows(key_rows<HopperTile>(call, of.member, call.dv, of.sample, of.head), first, of.visible, call.keys,
               call.width, dv, 1.0f, 1.0f);
  }
  return has_nan(dk) || has_nan(dv);
}

// Everything once more, for a head in which 0 times what is hidden was NaN, as in the longer passes. The gradients by
// keys need delta of all queries: a part finds the same as the others.
template <class Math, int kWidth, int kTiles, int kParts>
__device__ __forceinline__ void whole_carefully(const AttentionCall& call, Access access, unsigned char* memory,
                                                const WholeHead<kWidth, kTiles, kParts>& of) {
  const int block = static_cast<int>(blockIdx.x) / kParts, key_tiles = (call.keys + kSide - 1) / kSide;
  AttentionCall only_delta = call;
  only_delta.dq = kAbsent;
  for (int tile = 0; tile < of.query_tiles; ++tile) {
    const bool own = tile % kParts == of.part;
    dq_block<Math, kWidth, 1, 32>(own ? call : only_delta, access, memory, block * of.query_tiles + tile);
    __syncthreads();
  }
  for (int tile = of.part; tile < key_tiles; tile += kParts) {
    dkv_block<Math, kWidth, 1, 32>(call, access, memory, block * key_tiles + tile);
    __syncthreads();
  }
}

template <class Math, int kWidth, int kTiles, int kParts>
__global__ void __launch_bounds__(kGroup, 3)
    hopper_whole_backward_kernel(const __grid_constant__ AttentionCall call, Access access) {
  extern __shared__ __align__(1024) unsigned char memory[];
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const WholeHead<kWidth, kTiles, kParts> of(call, member, memory);
  constexpr int kRows = of.kRows;
  of.load(of.dc, context_rows<const HopperTile>(call, member, call.dcontext, of.sample, of.head), call.queries,
          call.width);
  float* const lse = reinterpret_cast<float*>(of.dc + kRows * kLine);
  float* const delta = lse + kRows;
  const int row = static_cast<int>(threadIdx.x);
  if (row < kRows)
    lse[row] = row < call.queries ? query_numbers(call, member, call.lse, of.sample, of.head)[row] * kLog2E : 0.0f;
  if constexpr (kParts > 1) {
    whole_delta(call, of, delta);
  } else if (row < kRows) {
    delta[row] = 0.0f;
  }
  of.arrive();
  bool bad = false;
  for (int tile = of.part; tile < of.query_tiles; tile += kParts) bad = whole_dq(call, of, tile, lse, delta) || bad;
  const int key_tiles = (call.keys + kSide - 1) / kSide;
  if (call.dk >= 0 || call.dv >= 0) {
    if (kParts == 1) __syncthreads();
    for (int tile = of.part; tile < key_tiles; tile += kParts) bad = whole_dkv(call, of, tile, lse, delta) || bad;
  }
  if (of.causal && __syncthreads_or(bad) != 0) whole_carefully<Math>(call, access, memory, of);
}

}  // namespace norma::cuda::attention
