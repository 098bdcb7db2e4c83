// The forward pass for sequences up to 128 with wgmma: all scores of 64 queries are in registers at once.
#pragma once

#include "ops/cuda/attention_hopper_forward.cuh"
#include "ops/cuda/attention_hopper_head.cuh"

namespace norma::cuda::attention {

// Scores of all keys of a tile of queries become exponentials; hidden ones, and tiles from `seen` on, 0.
template <int kTiles>
__device__ __forceinline__ void exponentiate_all(Accumulator (&scores)[kTiles], int seen, float factor,
                                                 Softmax<MatrixLanes, 1>& softmax) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float top = -INFINITY, total = 0.0f;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      if (tile >= seen) continue;
#pragma unroll
      for (int n = 0; n < kSide / 8; ++n) {
        top = fmaxf(top, fmaxf(scores[tile][0][n][2 * half], scores[tile][0][n][2 * half + 1]));
      }
    }
    top = row_max<MatrixLanes>(top);
    const float shift = top == -INFINITY ? 0.0f : top * factor;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      if (tile >= seen) {
#pragma unroll
        for (int n = 0; n < kSide / 8; ++n) scores[tile][0][n][2 * half] = scores[tile][0][n][2 * half + 1] = 0.0f;
        continue;
      }
#pragma unroll
      for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[tile][0][n][i] = power_of_two(fmaf(scores[tile][0][n][i], factor, -shift));
          total += scores[tile][0][n][i];
        }
      }
    }
    softmax.largest[0][half] = top;
    softmax.sum[0][half] = total;
  }
}

template <class Math, int kWidth, int kTiles, int kParts>
__global__ void __launch_bounds__(kGroup, 4)
    hopper_whole_forward_kernel(const __grid_constant__ AttentionCall call, Access access) {
  extern __shared__ __align__(1024) unsigned char memory[];
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const WholeHead<kWidth, kTiles, kParts> of(call, member, memory);
  const float factor = call.scale > 0.0f ? call.scale * kLog2E : 1.0f;
  of.arrive();
  bool bad = false;
  for (int tile = of.part; tile < of.query_tiles; tile += kParts) {
    Accumulator scores[kTiles];
    begin_products();
#pragma unroll
    for (int key = 0; key < kTiles; ++key) {
      issue_rows<kWidth>(scores[key], of.tile_q(tile), of.tile_k(key));
    }
    commit_products();
    wait_for_products<0>();
    const int seen = of.seen_tiles(tile);
#pragma unroll
    for (int key = 0; key < kTiles; ++key) {
      settle(scores[key]);
      if (call.scale <= 0.0f) scale_all(scores[key], call.scale * kLog2E);
      if (of.hides(tile, key)) {
        hide_scores<MatrixLanes>(scores[key], of.causal ? of.diagonal(tile, key) : -kSide, of.visible - key * kSide);
      }
    }
    Softmax<MatrixLanes, 1> softmax;
    exponentiate_all(scores, seen, factor, softmax);
    float context[1][kWidth / 8][4];
    clear(context);
    Fragment p[kTiles];
#pragma unroll
    for (int key = 0; key < kTiles; ++key) pack_fragment(p[key], scores[key]);
    settle(context);
    begin_products();
#pragma unroll
    for (int key = 0; key < kTiles; ++key) issue_held(context, p[key], of.tile_v(key));
    commit_products();
    wait_for_products<0>();
    settle(context);
    bad = bad || has_nan(context);
    store_context(call, member, of.sample, of.head, tile * kSide + of.warp, of.visible, factor, softmax, context);
  }
  if (!of.causal || __syncthreads_or(bad) == 0) return;
  for (int tile = of.part; tile < of.query_tiles; tile += kParts) {  // as in the longer forward pass
    forward_block<Math, kWidth, 1, 32>(call, access, memory,
                                       static_cast<int>(blockIdx.x) / kParts * of.query_tiles + tile);
    __syncthreads();
  }
}

}  // namespace norma::cuda::attention
