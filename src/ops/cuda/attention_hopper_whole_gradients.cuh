// The backward pass for sequences up to 128 and heads up to 32 with wgmma, where the context is given and heads are
// many: P^T and dS^T of 64 keys and 64 queries are computed once. dv and dk take them from registers, dq takes dS from
// shared memory.
#pragma once

#include "ops/cuda/attention_hopper_whole_backward.cuh"

namespace norma::cuda::attention {

// P^T is 0 where hidden(row, column), counted from this thread's first of both.
template <int kN, class Hidden>
__device__ __forceinline__ void hide_where(float (&p)[1][kN][4], const Hidden& hidden) {
#pragma unroll
  for (int n = 0; n < kN; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (hidden((i >> 1) * 8, n * 8 + (i & 1))) p[0][n][i] = 0.0f;
    }
  }
}

// Rows of a fragment, 16 of each warp, into a tile, from column `first` on.
template <int kSteps>
__device__ __forceinline__ void store_fragment(HopperTile* tile, int warp, int first, const unsigned (&a)[kSteps][4]) {
  const int lane = lane_of(), row = warp + (lane & 15), column = first + (lane >> 4) * 8;
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
#if __CUDA_ARCH__ >= 900  // elsewhere this code is compiled and never run
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     shared_address(tile + swizzled(row, k * 16 + column))),
                 "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]), "r"(a[k][3])
                 : "memory");
#endif
  }
}

// delta, the sum over a row of context times its gradient. A thread reads of the latter what it has copied itself.
template <int kWidth, int kTiles, int kThreads = kGroup>
class WholeDelta {
 public:
  __device__ __forceinline__ WholeDelta(const AttentionCall& call, const WholeHead<kWidth, kTiles, 1, kThreads>& of) {
    const HeadRows<const HopperTile> context =
        context_rows<const HopperTile>(call, of.member, call.context, of.sample, of.head);
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const bool there = i * kPass + row_ < call.queries && lane_ * 8 < call.width;
      context_[i] = there ? load_raw<HopperTile, 8>(context.first + (i * kPass + row_) * context.row + lane_ * 8)
                          : make_uint4(0, 0, 0, 0);
    }
  }
  __device__ __forceinline__ void write(const HopperTile* dc, float* delta) const {
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      float a[8], b[8], sum = 0.0f;
      unpack<HopperTile, 8>(context_[i], a);
      cuda::load<HopperTile, 8>(dc + swizzled(i * kPass + row_, lane_ * 8), b);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum = fmaf(a[j], b[j], sum);
#pragma unroll
      for (int distance = kLanes / 2; distance > 0; distance >>= 1) sum += __shfl_xor_sync(kAll, sum, distance);
      if (lane_ == 0) delta[i * kPass + row_] = sum;
    }
  }

 private:
  static constexpr int kLanes = kWidth / 8, kPass = kThreads / kLanes;  // of a row, 8 elements each; rows at a time
  static constexpr int kSteps = kTiles * kSide / kPass;
  int lane_ = static_cast<int>(threadIdx.x) % kLanes, row_ = static_cast<int>(threadIdx.x) / kLanes;
  uint4 context_[kSteps];
};

// Shared memory after the tiles of the head: a tile for dS^T, then lse and delta of each query.
template <int kTiles>
constexpr std::int64_t whole_gradients_bytes() {
  return (4 * kTiles + 1) * kTileBytes + 1024 + 2 * kTiles * kSide * static_cast<std::int64_t>(sizeof(float));
}

template <class Math, int kWidth, int kTiles>
__global__ void __launch_bounds__(kGroup, 3)
    hopper_whole_gradients_kernel(const __grid_constant__ AttentionCall call, Access access) {
  using Lanes = MatrixLanes;
  extern __shared__ __align__(1024) unsigned char memory[];
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const WholeHead<kWidth, kTiles, 1> of(call, member, memory);
  constexpr int kRows = of.kRows;
  of.load(of.dc, context_rows<const HopperTile>(call, member, call.dcontext, of.sample, of.head), call.queries,
          call.width);
  const WholeDelta<kWidth, kTiles> products(call, of);
  HopperTile* const ds_tile = of.dc + kRows * kLine;
  const unsigned ds_at = of.tile_q(4 * kTiles);
  float* const lse = reinterpret_cast<float*>(ds_tile + kSide * kLine);
  float* const delta = lse + kRows;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kRows) {
    lse[thread] =
        thread < call.queries ? query_numbers(call, member, call.lse, of.sample, of.head)[thread] * kLog2E : 0.0f;
  }
  wait_for_copies();
  products.write(of.dc, delta);
  publish();
  __syncthreads();

  float dq[kTiles][1][kWidth / 8][4];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) clear(dq[tile]);
  const int row = of.warp + Lanes::g(), column = 2 * Lanes::t();  // the thread's first, of keys and queries of a tile
  const int key_tiles = (call.keys + kSide - 1) / kSide;
  bool bad = false;
#pragma unroll 1
  for (int key = 0; key < key_tiles; ++key) {
    float dk[1][kWidth / 8][4], dv[1][kWidth / 8][4];
    clear(dk);
    clear(dv);
#pragma unroll
    for (int query = 0; query < kTiles; ++query) {
      if ((of.causal && query < key) || query >= of.query_tiles || key >= of.key_tiles) continue;
      Accumulator p, dp;
      begin_products();
      issue_rows<kWidth>(p, of.tile_k(key), of.tile_q(query));
      commit_products();
      issue_rows<kWidth>(dp, of.tile_v(key), of.tile_dc(query));
      commit_products();
      wait_for_products<1>();
      settle(p);
      transposed_exponentials(p, call.scale * kLog2E, lse + query * kSide);
      // What is hidden is 0 in dS too, unless it is multiplied by infinities or NaN: see below.
      if (of.causal && query == key) {
        const int diagonal = row - column;
        hide_where(p, [&](int r, int c) { return c < diagonal + r; });
      }
      if ((key + 1) * kSide > of.visible) {
        const int end = of.visible - key * kSide - row;
        hide_where(p, [&](int r, int) { return r >= end; });
      }
      if ((query + 1) * kSide > call.queries) {
        const int end = call.queries - query * kSide - column;
        hide_where(p, [&](int, int c) { return c >= end; });
      }
      wait_for_products<0>();
      settle(dp);
      transposed_gradients(p, dp, delta + query * kSide);
      Fragment held_p, held_ds;
      pack_fragment(held_p, p);
      pack_fragment(held_ds, dp);
      settle(dk);
      settle(dv);
      begin_products();
      issue_held(dv, held_p, of.tile_dc(query));
      issue_held(dk, held_ds, of.tile_q(query));
      commit_products();
      __syncthreads();  // all have waited for the last product with the tile before
      store_fragment(ds_tile, of.warp, 0, held_ds);
      publish();
      __syncthreads();
      settle(dq[query]);
      begin_products();
      issue_columns(dq[query], ds_at, of.tile_k(key));
      commit_products();
      wait_for_products<0>();
      settle(dk);
      settle(dv);
      settle(dq[query]);
    }
    bad = bad || has_nan(dk) || has_nan(dv);
    const int first = key * kSide + of.warp;
    if (call.dk >= 0) {
      store_rows(key_rows<HopperTile>(call, member, call.dk, of.sample, of.head), first, of.visible, call.keys,
                 call.width, dk, call.scale, call.scale);
    }
    if (call.dv >= 0) {
      store_rows(key_rows<HopperTile>(call, member, call.dv, of.sample, of.head), first, of.visible, call.keys,
                 call.width, dv, 1.0f, 1.0f);
    }
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    bad = bad || has_nan(dq[tile]);
    if (call.dq >= 0) {
      store_rows(query_rows<HopperTile>(call, member, call.dq, of.sample, of.head), tile * kSide + of.warp,
                 of.visible == 0 ? 0 : call.queries, call.queries, call.width, dq[tile], call.scale, call.scale);
    }
  }
  if (of.causal && __syncthreads_or(bad) != 0) whole_carefully<Math>(call, access, memory, of);
}

}  // namespace norma::cuda::attention
