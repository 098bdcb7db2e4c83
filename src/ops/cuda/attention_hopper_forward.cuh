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
    group_first = first + static_cast<int>(threadIdx.x) / kGroup * kSide;
    warp_first = first + static_cast<int>(threadIdx.x) / kWarp * 16;
  }
};

__device__ __forceinline__ void store_context(const AttentionCall& call, std::byte* member, const ForwardPlace& place,
                                              int visible, float factor, const Softmax<MatrixLanes, 1>& softmax,
                                              const Accumulator& context) {
  using Lanes = MatrixLanes;
  float inverse[1][2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float total = row_sum<Lanes>(softmax.sum[0][half]), largest = softmax.largest[0][half];
    inverse[0][half] = 1.0f / total;
    const int row = place.warp_first + half * 8 + Lanes::g();
    if (call.lse >= 0 && Lanes::t() == 0 && row < call.queries) {
      const float seen = largest == -INFINITY ? NAN : fmaf(largest * factor, kLn2, logf(total));
      query_numbers(call, member, call.lse, place.sample, place.head)[row] = visible == 0 ? -INFINITY : seen;
    }
  }
  store_tile<Lanes>(context_rows<HopperTile>(call, member, call.context, place.sample, place.head), place.warp_first,
                    visible == 0 ? 0 : call.queries, call.queries, 0, call.width, Access::chunks, context, inverse);
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
  const auto k = key_rows<const HopperTile>(call, member, call.k, place.sample, kv_head);
  const auto v = key_rows<const HopperTile>(call, member, call.v, place.sample, kv_head);

  HopperTile* const q_tile = aligned_tiles(memory);
  HopperTile* const group_q = q_tile + (place.group_first - place.first) * kLine;
  const auto k_tile = [&](int tile) { return q_tile + (kForwardRows + (tile & 1) * kSide) * kLine; };
  const auto v_tile = [&](int tile) { return q_tile + (kForwardRows + (2 + (tile & 1)) * kSide) * kLine; };
  const auto load_keys = [&](int tile) {
    if (tile < tiles) load_rows<kSide, kForwardThreads>(k_tile(tile), k, tile * kSide, visible, call.width);
  };
  const auto load_values = [&](int tile) {
    if (tile < tiles) load_rows<kSide, kForwardThreads>(v_tile(tile), v, tile * kSide, visible, call.width);
  };
  const auto arrive = [] {  // of what this block has asked for
    wait_for_copies();
    publish();
    __syncthreads();
  };

  const float factor = call.scale > 0.0f ? call.scale * kLog2E : 1.0f;
  Accumulator scores, context;
  Fragment p;
  Softmax<MatrixLanes, 1> softmax;
  clear(context);
  load_rows<kForwardRows, kForwardThreads>(q_tile,
                                           query_rows<const HopperTile>(call, member, call.q, place.sample, place.head),
                                           place.first, call.queries, call.width);
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
    issue_rows(scores, group_q, k_tile(0));
    commit_products();
    for (int tile = 0; tile + 1 < group_tiles; ++tile) {
      wait_for_products<0>();
      settle(scores);
      settle(context);
      advance(tile);
      exponentiate(tile);
      begin_products();
      issue_held(context, p, v_tile(tile));
      issue_rows(scores, group_q, k_tile(tile + 1));
      commit_products();
    }
    wait_for_products<0>();
    settle(scores);
    settle(context);
    advance(group_tiles - 1);
    exponentiate(group_tiles - 1);
    begin_products();
    issue_held(context, p, v_tile(group_tiles - 1));
    commit_products();
    wait_for_products<0>();
    settle(context);
  }
  for (int tile = group_tiles; tile < tiles; ++tile) advance(tile);  // for the other warpgroup
  if (causal && __syncthreads_or(has_nan(context)) != 0) {  // from what the mask hides, perhaps: all again with care
    forward_block<Math, kSide, 1, 32>(call, access, memory);
  } else {
    store_context(call, member, place, visible, factor, softmax, context);
  }
}

inline int launch_hopper_forward(const AttentionCall& call, Stream stream) {
  constexpr std::int64_t kShared = (kForwardRows + 4 * kSide) * kLine * 2 + 1024;
  static_assert(kShared >= (kForwardRows + 4 * 32) * stride_of<HopperTile>(kSide) * 2);  // of the careful way
  return launch_kernel(hopper_forward_kernel<Bf16Math>,
                       std::int64_t{call.batch} * call.heads * divide_up(call.queries, kForwardRows), kForwardThreads,
                       kShared, call, Access::chunks, stream);
}

}  // namespace norma::cuda::attention
