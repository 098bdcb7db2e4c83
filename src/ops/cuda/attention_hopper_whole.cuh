// Both passes for sequences up to 128 with wgmma: a warpgroup has a head, whose queries, keys and values are all in
// shared memory. The backward pass first takes 64 queries at a time (P, delta, dS and dq), then 64 keys at a time, with
// P^T and dS^T computed again rather than turned over through shared memory.
#pragma once

#include "ops/cuda/attention_hopper_dkv.cuh"
#include "ops/cuda/attention_hopper_dq.cuh"
#include "ops/cuda/attention_hopper_forward.cuh"

namespace norma::cuda::attention {

// A head in a block, kTiles tiles of 64 rows each of queries, keys, values and, at last, gradients by the context.
template <int kWidth, int kTiles>
struct WholeHead {
  static constexpr int kRows = kTiles * kSide;
  std::byte* member;
  int sample, head, visible, key_tiles, query_tiles;
  bool causal;
  HopperTile *q, *k, *v, *dc;
  unsigned tiles_at;
  int warp = static_cast<int>(threadIdx.x) / kWarp * 16;

  __device__ __forceinline__ WholeHead(const AttentionCall& call, std::byte* of, unsigned char* memory)
      : member(of),
        sample(static_cast<int>(blockIdx.x) / call.heads),
        head(static_cast<int>(blockIdx.x) % call.heads),
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
    RowLoader<kRows, kGroup, kWidth>(from, 0, end, width).load(to);
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

template <class Math, int kWidth, int kTiles>
__global__ void __launch_bounds__(kGroup, 4)
    hopper_whole_forward_kernel(const __grid_constant__ AttentionCall call, Access access) {
  extern __shared__ __align__(1024) unsigned char memory[];
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const WholeHead<kWidth, kTiles> of(call, member, memory);
  const float factor = call.scale > 0.0f ? call.scale * kLog2E : 1.0f;
  of.arrive();
  bool bad = false;
  for (int tile = 0; tile < of.query_tiles; ++tile) {
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
  for (int tile = 0; tile < of.query_tiles; ++tile) {  // as in the longer forward pass
    forward_block<Math, kWidth, 1, 32>(call, access, memory, static_cast<int>(blockIdx.x) * of.query_tiles + tile);
    __syncthreads();
  }
}

// dq of a tile of queries; leaves delta of its rows in shared memory. Whether there is a NaN in it.
template <int kWidth, int kTiles>
__device__ __forceinline__ bool whole_dq(const AttentionCall& call, const WholeHead<kWidth, kTiles>& of, int tile,
                                         const float* lse_of, float* delta_of) {
  using Lanes = MatrixLanes;
  const int row = tile * kSide + of.warp + Lanes::g(), seen = of.seen_tiles(tile);
  Accumulator p[kTiles], dp[kTiles];
  begin_products();
#pragma unroll
  for (int key = 0; key < kTiles; ++key) {
    issue_rows<kWidth>(p[key], of.tile_q(tile), of.tile_k(key));
    issue_rows<kWidth>(dp[key], of.tile_dc(tile), of.tile_v(key));
  }
  commit_products();
  const float lse[2] = {lse_of[row], lse_of[row + 8]};
  float delta[2] = {0.0f, 0.0f};
  wait_for_products<0>();
#pragma unroll
  for (int key = 0; key < kTiles; ++key) {
    settle(p[key]);
    settle(dp[key]);
    if (key >= seen) {
      clear(p[key]);
      clear(dp[key]);
      continue;
    }
    exponentials(p[key], call.scale * kLog2E, lse);
    if (of.hides(tile, key)) {
      hide<Lanes>(p[key], dp[key], of.causal ? of.diagonal(tile, key) : -kSide, of.visible - key * kSide);
    }
#pragma unroll
    for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) delta[i >> 1] = fmaf(p[key][0][n][i], dp[key][0][n][i], delta[i >> 1]);
    }
  }
  delta[0] = row_sum<Lanes>(delta[0]);
  delta[1] = row_sum<Lanes>(delta[1]);
  if (Lanes::t() == 0) {
    delta_of[row] = delta[0];
    delta_of[row + 8] = delta[1];
  }
  if (call.dq < 0) return false;
  Fragment ds[kTiles];
#pragma unroll
  for (int key = 0; key < kTiles; ++key) {
#pragma unroll
    for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) p[key][0][n][i] *= dp[key][0][n][i] - delta[i >> 1];
    }
    pack_fragment(ds[key], p[key]);
  }
  float dq[1][kWidth / 8][4];
  clear(dq);
  settle(dq);
  begin_products();
#pragma unroll
  for (int key = 0; key < kTiles; ++key) issue_held(dq, ds[key], of.tile_k(key));
  commit_products();
  wait_for_products<0>();
  settle(dq);
  store_rows(query_rows<HopperTile>(call, of.member, call.dq, of.sample, of.head), tile * kSide + of.warp,
             of.visible == 0 ? 0 : call.queries, call.queries, call.width, dq, call.scale, call.scale);
  return has_nan(dq);
}

// dk and dv of a tile of keys.
template <int kWidth, int kTiles>
__device__ __forceinline__ bool whole_dkv(const AttentionCall& call, const WholeHead<kWidth, kTiles>& of, int tile,
                                          const float* lse, const float* delta) {
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

template <class Math, int kWidth, int kTiles>
__global__ void __launch_bounds__(kGroup, 3)
    hopper_whole_backward_kernel(const __grid_constant__ AttentionCall call, Access access) {
  extern __shared__ __align__(1024) unsigned char memory[];
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const WholeHead<kWidth, kTiles> of(call, member, memory);
  constexpr int kRows = of.kRows;
  of.load(of.dc, context_rows<const HopperTile>(call, member, call.dcontext, of.sample, of.head), call.queries,
          call.width);
  float* const lse = reinterpret_cast<float*>(of.dc + kRows * kLine);
  float* const delta = lse + kRows;
  const int row = static_cast<int>(threadIdx.x);
  if (row < kRows) {
    lse[row] = row < call.queries ? query_numbers(call, member, call.lse, of.sample, of.head)[row] * kLog2E : 0.0f;
    delta[row] = 0.0f;
  }
  of.arrive();
  bool bad = false;
  for (int tile = 0; tile < of.query_tiles; ++tile) bad = whole_dq(call, of, tile, lse, delta) || bad;
  const int key_tiles = (call.keys + kSide - 1) / kSide;
  if (call.dk >= 0 || call.dv >= 0) {
    __syncthreads();
    for (int tile = 0; tile < key_tiles; ++tile) bad = whole_dkv(call, of, tile, lse, delta) || bad;
  }
  if (!of.causal || __syncthreads_or(bad) == 0) return;
  const int block = static_cast<int>(blockIdx.x);
  for (int tile = 0; tile < of.query_tiles; ++tile) {  // as in the longer passes
    dq_block<Math, kWidth, 1, 32>(call, access, memory, block * of.query_tiles + tile);
    __syncthreads();
  }
  for (int tile = 0; tile < key_tiles; ++tile) {
    dkv_block<Math, kWidth, 1, 32>(call, access, memory, block * key_tiles + tile);
    __syncthreads();
  }
}

template <class Run>
int with_whole(const AttentionCall& call, const Run& run) {
  const bool two = std::max(call.queries, call.keys) > kSide;
  const auto tiles = [&]<int kWidth>() {
    return two ? run.template operator()<kWidth, 2>() : run.template operator()<kWidth, 1>();
  };
  if (call.width <= 16) return tiles.template operator()<16>();
  if (call.width <= 32) return tiles.template operator()<32>();
  return tiles.template operator()<64>();
}

// Careful ways take tiles of 32 and two buffers.
constexpr std::int64_t careful_bytes(int width) { return 256 * stride_of<HopperTile>(width) * 2 + 4 * 32 * 4; }

inline int launch_hopper_whole_forward(const AttentionCall& call, Stream stream) {
  return with_whole(call, [&]<int kWidth, int kTiles>() {
    const std::int64_t shared = std::max<std::int64_t>(3 * kTiles * kTileBytes + 1024, careful_bytes(kWidth));
    return launch_kernel(hopper_whole_forward_kernel<Bf16Math, kWidth, kTiles>, std::int64_t{call.batch} * call.heads,
                         kGroup, shared, call, Access::chunks, stream);
  });
}

inline int launch_hopper_whole_backward(const AttentionCall& call, Stream stream) {
  return with_whole(call, [&]<int kWidth, int kTiles>() {
    const std::int64_t shared =
        std::max<std::int64_t>(4 * kTiles * kTileBytes + 1024 + 2 * kTiles * kSide * 4, careful_bytes(kWidth));
    return launch_kernel(hopper_whole_backward_kernel<Bf16Math, kWidth, kTiles>, std::int64_t{call.batch} * call.heads,
                         kGroup, shared, call, Access::chunks, stream);
  });
}

}  // namespace norma::cuda::attention
