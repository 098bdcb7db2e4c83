// The gradient by the queries of attention_dq.cuh with wgmma: a warpgroup has 64 queries of one head. delta, the sum of
// P dP over keys, is found by a launch before: it is dcontext . context row by row where the context is known, else a
// pass over the keys.
#pragma once

#include "ops/cuda/attention_dq.cuh"
#include "ops/cuda/attention_wgmma.cuh"

namespace norma::cuda::attention {

enum class DqStage { delta, gradient };

// P = exp(scale q k^T - lse) from scores, lse in powers of 2.
__device__ __forceinline__ void exponentials(Accumulator& p, float factor, const float (&lse)[2]) {
#pragma unroll
  for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) p[0][n][i] = power_of_two(fmaf(p[0][n][i], factor, -lse[i >> 1]));
  }
}

// Of keys and values; the gradient reads keys a step longer than delta does.
__host__ __device__ constexpr int dq_buffers(DqStage stage) { return stage == DqStage::delta ? 2 : 3; }

template <class Math, DqStage kStage>
__global__ void __launch_bounds__(kGroup, kStage == DqStage::delta ? 4 : 3)
    hopper_dq_kernel(const __grid_constant__ AttentionCall call, Access access) {
  using Lanes = MatrixLanes;
  constexpr int kBuffers = dq_buffers(kStage);
  extern __shared__ __align__(1024) unsigned char memory[];
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const int blocks = (call.queries + kSide - 1) / kSide, pair = static_cast<int>(blockIdx.x) / blocks;
  const int first = (blocks - 1 - static_cast<int>(blockIdx.x) % blocks) * kSide;
  const int sample = pair / call.heads, head = pair % call.heads, kv_head = head / (call.heads / call.kv_heads);
  const int warp_first = first + static_cast<int>(threadIdx.x) / kWarp * 16;
  const bool causal = call.mask == KeyMask::causal;
  const int visible = visible_keys(call, member, sample);
  const int tiles = ((causal ? min(visible, first + kSide) : visible) + kSide - 1) / kSide;
  // Tiles: queries, gradients by the context, then pairs of keys and values.
  HopperTile* const q_tile = aligned_tiles(memory);
  const auto pair_of = [](int tile) { return 2 + 2 * (tile % kBuffers); };
  RowLoader<kSide, kGroup> k(key_rows<const HopperTile>(call, member, call.k, sample, kv_head), 0, visible, call.width);
  RowLoader<kSide, kGroup> v(key_rows<const HopperTile>(call, member, call.v, sample, kv_head), 0, visible, call.width);
  const auto load = [&](int tile) {
    if (tile >= tiles) return;
    k.load(q_tile + pair_of(tile) * kSide * kLine);
    v.load(q_tile + (pair_of(tile) + 1) * kSide * kLine);
  };
  RowLoader<kSide, kGroup>(query_rows<const HopperTile>(call, member, call.q, sample, head), first, call.queries,
                           call.width)
      .load(q_tile);
  RowLoader<kSide, kGroup>(context_rows<const HopperTile>(call, member, call.dcontext, sample, head), first,
                           call.queries, call.width)
      .load(q_tile + kSide * kLine);
  load(0);
  float* const deltas = query_numbers(call, member, call.scratch, sample, head);
  float lse[2], delta[2] = {0.0f, 0.0f};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp_first + half * 8 + Lanes::g();
    lse[half] = row < call.queries ? query_numbers(call, member, call.lse, sample, head)[row] * kLog2E : 0.0f;
    if (kStage == DqStage::gradient) delta[half] = row < call.queries ? deltas[row] : 0.0f;
  }

  Accumulator p, dp, dq;
  Fragment ds;
  clear(dq);
  const unsigned tiles_at = descriptor(q_tile);
  const auto issue_scores = [&](int tile) {
    issue_rows(p, tiles_at, tiles_at + pair_of(tile) * kNextTile);
    issue_rows(dp, tiles_at + kNextTile, tiles_at + (pair_of(tile) + 1) * kNextTile);
  };
  wait_for_copies();
  publish();
  __syncthreads();
  load(1);
  const auto advance = [&](int tile) {
    wait_for_products<0>();
    settle(p);
    settle(dp);
    settle(dq);
    wait_for_copies();
    publish();
    __syncthreads();
    load(tile + 2);
    const int key = tile * kSide, diagonal = key - warp_first;
    exponentials(p, call.scale * kLog2E, lse);
    if ((causal && diagonal > 1 - kSide) || key + kSide > visible) {
      hide<Lanes>(p, dp, causal ? diagonal : -kSide, visible - key);
    }
#pragma unroll
    for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (kStage == DqStage::delta) {
          delta[i >> 1] = fmaf(p[0][n][i], dp[0][n][i], delta[i >> 1]);
        } else {
          p[0][n][i] *= dp[0][n][i] - delta[i >> 1];  // a NaN is its own row's
        }
      }
    }
    if constexpr (kStage == DqStage::gradient) pack_fragment(ds, p);
  };
  if (tiles > 0) {
    settle(dq);
    begin_products();
    issue_scores(0);
    commit_products();
    for (int tile = 0; tile + 1 < tiles; ++tile) {
      advance(tile);
      begin_products();
      if constexpr (kStage == DqStage::gradient) issue_held(dq, ds, tiles_at + pair_of(tile) * kNextTile);
      issue_scores(tile + 1);
      commit_products();
    }
    advance(tiles - 1);
    if constexpr (kStage == DqStage::gradient) {
      begin_products();
      issue_held(dq, ds, tiles_at + pair_of(tiles - 1) * kNextTile);
      commit_products();
      wait_for_products<0>();
      settle(dq);
    }
  }
  if constexpr (kStage == DqStage::delta) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      delta[half] = row_sum<Lanes>(delta[half]);
      const int row = warp_first + half * 8 + Lanes::g();
      if (Lanes::t() == 0 && row < call.queries) deltas[row] = delta[half];
    }
  } else {
    if (causal && __syncthreads_or(has_nan(dq)) != 0) {  // as in the forward pass
      dq_block<Math, kSide, 1, 32>(call, access, memory, static_cast<int>(blockIdx.x));
      return;
    }
    store_rows(query_rows<HopperTile>(call, member, call.dq, sample, head), warp_first, visible == 0 ? 0 : call.queries,
               call.queries, call.width, dq, call.scale, call.scale);
  }
}

// delta = dcontext . context: a warp has 4 rows, 8 lanes each.
template <class Math>
__global__ void __launch_bounds__(256) hopper_delta_kernel(const __grid_constant__ AttentionCall call, Access) {
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const int lane = static_cast<int>(threadIdx.x) % 8;
  const std::int64_t row = (std::int64_t{blockIdx.x} * 256 + threadIdx.x) / 8;  // of [batch, queries, heads]
  const std::int64_t rows = std::int64_t{call.batch} * call.queries * call.heads;
  float sum = 0.0f;
  if (row < rows && lane * 8 < call.width) {
    float a[8], b[8];
    cuda::load<HopperTile, 8>(at<const HopperTile>(member, call.context) + row * call.width + lane * 8, a);
    cuda::load<HopperTile, 8>(at<const HopperTile>(member, call.dcontext) + row * call.width + lane * 8, b);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = fmaf(a[i], b[i], sum);
  }
#pragma unroll
  for (int distance = 4; distance > 0; distance >>= 1) sum += __shfl_xor_sync(kAll, sum, distance);
  if (row >= rows || lane != 0) return;
  const int time = static_cast<int>(row / call.heads), head = static_cast<int>(row % call.heads);
  query_numbers(call, member, call.scratch, time / call.queries, head)[time % call.queries] = sum;
}

}  // namespace norma::cuda::attention
