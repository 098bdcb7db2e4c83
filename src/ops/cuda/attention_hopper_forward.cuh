// The forward pass of attention_forward.cuh with wgmma: two warpgroups with 64 queries each share tiles of keys and
// values. The scores of the next tile are under way together with the product by this tile's values.
#pragma once

#include "ops/cuda/attention_forward.cuh"
#include "ops/cuda/attention_wgmma.cuh"

namespace norma::cuda::attention {

constexpr int kForwardGroups = 2, kForwardRows = kForwardGroups * kSide, kForwardThreads = kForwardGroups * kGroup;

// Which queries of which head a block, and a warpgroup of it, has.
struct ForwardPlace {
  int first, sample, head, group_first, warp_first;
  __device__ explicit ForwardPlace(const AttentionCall& call) {
    const int blocks = (call.queries + kForwardRows - 1) / kForwardRows, pair = static_cast<int>(blockIdx.x) / blocks;
    first = (blocks - 1 - static_cast<int>(blockIdx.x) % blocks) * kForwardRows;  // most work under a mask: the last
    sample = pair / call.heads;
    head = pair % call.heads;
    group_first = first + __shfl_sync(kAll, static_cast<int>(threadIdx.x) / kGroup, 0) * kSide;  // seen to be uniform
    warp_first = first + static_cast<int>(threadIdx.x) / kWarp * 16;
  }
};

template <int kN>
__device__ __forceinline__ void store_context(const AttentionCall& call, std::byte* member, int sample, int head,
                                              int warp_first, int visible, float factor,
                                              const Softmax<MatrixLanes, 1>& softmax,
                                              const float (&context)[1][kN][4]) {
  using Lanes = MatrixLanes;
  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float total = row_sum<Lanes>(softmax.sum[0][half]), largest = softmax.largest[0][half];
    inverse[half] = 1.0f / total;
    const int row = warp_first + half * 8 + Lanes::g();
    if (call.lse >= 0 && Lanes::t() == 0 && row < call.queries) {
      const float seen = largest == -INFINITY ? NAN : fmaf(largest * factor, kLn2, logf(total));
      query_numbers(call, member, call.lse, sample, head)[row] = visible == 0 ? -INFINITY : seen;
    }
  }
  store_rows(context_rows<HopperTile>(call, member, call.context, sample, head), warp_first,
             visible == 0 ? 0 : call.queries, call.queries, call.width, context, inverse[0], inverse[1]);
}

// A template only so that it is compiled where it is launched.
template <class Math>
__global__ void __launch_bounds__(kForwardThreads, 2)
    hopper_forward_kernel(const __grid_constant__ AttentionCall call, Access access) {
  extern __shared__ __align__(1024) unsigned char memory[];
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const ForwardPlace place(call);
  const int kv_head = place.head / (call.heads / call.kv_heads), visible = visible_keys(call, member, place.sample);
  const bool causal = call.mask == KeyMask::causal;
  const auto tiles_until = [](int keys) { return (keys + kSide - 1) / kSide; };
  const int tiles = tiles_until(causal ? min(visible, place.first + kForwardRows) : visible);
  const int group_tiles = tiles_until(causal ? min(visible, place.group_first + kSide) : visible);
  HopperTile* const q_tile = aligned_tiles(memory);
  const auto k_tile = [](int tile) { return 2 + (tile & 1); };  // after the tiles of queries
  const auto v_tile = [](int tile) { return 4 + (tile & 1); };
  RowLoader<kSide, kForwardThreads> k(key_rows<const HopperTile>(call, member, call.k, place.sample, kv_head), 0,
                                      visible, call.width);
  RowLoader<kSide, kForwardThreads> v(key_rows<const HopperTile>(call, member, call.v, place.sample, kv_head), 0,
                                      visible, call.width);
  const auto load_keys = [&](int tile) {
    if (tile < tiles) k.load(q_tile + k_tile(tile) * kSide * kLine);
  };
  const auto load_values = [&](int tile) {
    if (tile < tiles) v.load(q_tile + v_tile(tile) * kSide * kLine);
  };
  const auto arrive = [] {  // of what this block has asked for
    wait_for_copies();
    publish();
    __syncthreads();
  };

  const unsigned tiles_at = descriptor(q_tile);
  const unsigned group_q = tiles_at + static_cast<unsigned>(place.group_first - place.first) / kSide * kNextTile;
  const float factor = call.scale > 0.0f ? call.scale * kLog2E : 1.0f;
  Accumulator scores, context;
  Fragment p;
  Softmax<MatrixLanes, 1> softmax;
  clear(context);
  RowLoader<kForwardRows, kForwardThreads>(query_rows<const HopperTile>(call, member, call.q, place.sample, place.head),
                                           place.first, call.queries, call.width)
      .load(q_tile);
  load_keys(0);
  arrive();
  load_values(0);
  load_keys(1);
  const auto advance = [&](int tile) {  // nobody reads keys of this tile or values of the last any more
    arrive();
    load_values(tile + 1);
    load_keys(tile + 2);
  };
  const auto exponentiate = [&](int tile) {
    const int key = tile * kSide, diagonal = key - place.warp_first;  // row - column >= diagonal: seen
    if (call.scale <= 0.0f) scale_all(scores, call.scale * kLog2E);
    if ((causal && diagonal > 1 - kSide) || key + kSide > visible) {
      hide_scores<MatrixLanes>(scores, causal ? diagonal : -kSide, visible - key);
    }
    softmax.add(scores, factor, context);
    pack_fragment(p, scores);
  };
  if (group_tiles > 0) {
    settle(context);
    begin_products();
    issue_rows(scores, group_q, tiles_at + k_tile(0) * kNextTile);
    commit_products();
    for (int tile = 0; tile + 1 < group_tiles; ++tile) {
      wait_for_products<0>();
      settle(scores);
      settle(context);
      advance(tile);
      exponentiate(tile);
      begin_products();
      issue_held(context, p, tiles_at + v_tile(tile) * kNextTile);
      issue_rows(scores, group_q, tiles_at + k_tile(tile + 1) * kNextTile);
      commit_products();
    }
    wait_for_products<0>();
    settle(scores);
    settle(context);
    advance(group_tiles - 1);
    exponentiate(group_tiles - 1);
    begin_products();
    issue_held(context, p, tiles_at + v_tile(group_tiles - 1) * kNextTile);
    commit_products();
    wait_for_products<0>();
    settle(context);
  }
  for (int tile = group_tiles; tile < tiles; ++tile) advance(tile);  // for the other warpgroup
  if (causal && __syncthreads_or(has_nan(context)) != 0) {  // from what the mask hides, perhaps: all again with care
    forward_block<Math, kSide, 1, 32>(call, access, memory, static_cast<int>(blockIdx.x));
  } else {
    store_context(call, member, place.sample, place.head, place.warp_first, visible, factor, softmax, context);
  }
}

}  // namespace norma::cuda::attention
