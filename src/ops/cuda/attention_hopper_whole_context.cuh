// The forward pass for sequences up to 128 and heads up to 32 with wgmma, where heads are many: a block goes from head
// to head of a member, and the next one is on its way while it computes.
#pragma once

#include "ops/cuda/attention_hopper_whole_forward.cuh"

namespace norma::cuda::attention {

constexpr int kHalfLine = kLine / 2;

// Two heads in shared memory, one after the other. Heads this narrow leave half of a tile's lines: a line has a value
// and its key, and queries of the second tile lie beside those of the first.
template <int kWidth, int kTiles>
struct PassingHeads {
  static_assert(kWidth <= kHalfLine);
  static constexpr std::int64_t kBytes = 2 * (kTiles + 1) * kTileBytes + 1024;
  HopperTile* first;
  unsigned at;

  __device__ __forceinline__ explicit PassingHeads(unsigned char* memory)
      : first(aligned_tiles(memory)), at(descriptor(first)) {}
  __device__ __forceinline__ unsigned v(int buffer, int tile) const {
    return at + (buffer * (kTiles + 1) + tile) * kNextTile;
  }
  __device__ __forceinline__ unsigned k(int buffer, int tile) const { return v(buffer, tile) + kNextHalf; }
  __device__ __forceinline__ unsigned q(int buffer, int tile) const { return v(buffer, kTiles) + tile * kNextHalf; }

  __device__ __forceinline__ void load(const AttentionCall& call, std::byte* member, int pair, int buffer) const {
    const int sample = pair / call.heads, head = pair % call.heads, visible = visible_keys(call, member, sample);
    HopperTile* const tiles = first + buffer * (kTiles + 1) * kSide * kLine;
    const HeadRows<const HopperTile> queries = query_rows<const HopperTile>(call, member, call.q, sample, head);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      RowLoader<kSide, kGroup, kWidth>(queries, tile * kSide, call.queries, call.width, tile * kHalfLine)
          .load(tiles + kTiles * kSide * kLine);
    }
    RowLoader<kTiles * kSide, kGroup, kWidth>(key_rows<const HopperTile>(call, member, call.k, sample, head), 0,
                                              visible, call.width, kHalfLine)
        .load(tiles);
    RowLoader<kTiles * kSide, kGroup, kWidth>(key_rows<const HopperTile>(call, member, call.v, sample, head), 0,
                                              visible, call.width)
        .load(tiles);
  }

 private:
  static constexpr unsigned kNextHalf = kHalfLine * 2 / 16;
};

// Of a tile of queries and the first kSeen tiles of keys and values. Whether there is a NaN in it.
template <int kWidth, int kSeen>
__device__ __forceinline__ bool context_of_tile(const AttentionCall& call, std::byte* member, int pair, int tile,
                                                unsigned q, unsigned k, unsigned v, float factor) {
  const int sample = pair / call.heads, head = pair % call.heads, visible = visible_keys(call, member, sample);
  const int warp = static_cast<int>(threadIdx.x) / kWarp * 16;
  const bool causal = call.mask == KeyMask::causal;
  Accumulator scores[kSeen];
  begin_products();
#pragma unroll
  for (int key = 0; key < kSeen; ++key) issue_rows<kWidth>(scores[key], q, k + key * kNextTile);
  commit_products();
  wait_for_products<0>();
#pragma unroll
  for (int key = 0; key < kSeen; ++key) {
    settle(scores[key]);
    if (call.scale <= 0.0f) scale_all(scores[key], call.scale * kLog2E);
    if ((causal && tile == key) || (key + 1) * kSide > visible) {
      hide_scores<MatrixLanes>(scores[key], causal ? (key - tile) * kSide - warp : -kSide, visible - key * kSide);
    }
  }
  Softmax<MatrixLanes, 1> softmax;
  exponentiate_all(scores, kSeen, factor, softmax);
  float context[1][kWidth / 8][4];
  clear(context);
  Fragment p[kSeen];
#pragma unroll
  for (int key = 0; key < kSeen; ++key) pack_fragment(p[key], scores[key]);
  settle(context);
  begin_products();
#pragma unroll
  for (int key = 0; key < kSeen; ++key) issue_held(context, p[key], v + key * kNextTile);
  commit_products();
  wait_for_products<0>();
  settle(context);
  store_context(call, member, sample, head, tile * kSide + warp, visible, factor, softmax, context);
  return has_nan(context);
}

template <class Math, int kWidth, int kTiles>
__global__ void __launch_bounds__(kGroup, 4)
    hopper_whole_context_kernel(const __grid_constant__ AttentionCall call, Access access) {
  extern __shared__ __align__(1024) unsigned char memory[];
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const PassingHeads<kWidth, kTiles> heads(memory);
  const int pairs = call.batch * call.heads, hop = static_cast<int>(gridDim.x);
  const int query_tiles = (call.queries + kSide - 1) / kSide;
  const bool causal = call.mask == KeyMask::causal;
  const float factor = call.scale > 0.0f ? call.scale * kLog2E : 1.0f;
  int buffer = 0;
  heads.load(call, member, static_cast<int>(blockIdx.x), buffer);
  for (int pair = static_cast<int>(blockIdx.x); pair < pairs; pair += hop, buffer ^= 1) {
    wait_for_copies();
    publish();
    __syncthreads();  // and all have finished with the head before
    if (pair + hop < pairs) heads.load(call, member, pair + hop, buffer ^ 1);
    bool bad = false;
#pragma unroll 1
    for (int tile = 0; tile < query_tiles; ++tile) {
      const unsigned q = heads.q(buffer, tile);
      const bool all = !causal || tile + 1 == kTiles;
      bad = (all ? context_of_tile<kWidth, kTiles>(call, member, pair, tile, q, heads.k(buffer, 0), heads.v(buffer, 0),
                                                   factor)
                 : context_of_tile<kWidth, 1>(call, member, pair, tile, q, heads.k(buffer, 0), heads.v(buffer, 0),
                                              factor)) ||
            bad;
    }
    if (!causal || __syncthreads_or(bad) == 0) continue;
    wait_for_copies();  // of the next head, which comes again
    __syncthreads();
    for (int tile = 0; tile < query_tiles; ++tile) {  // as in the longer forward pass
      forward_block<Math, kWidth, 1, 32>(call, access, memory, pair * query_tiles + tile);
      __syncthreads();
    }
    if (pair + hop < pairs) heads.load(call, member, pair + hop, buffer ^ 1);
  }
}

}  // namespace norma::cuda::attention
