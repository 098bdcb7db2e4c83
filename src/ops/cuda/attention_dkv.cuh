// Gradients by keys and values: dv = P^T dcontext, dk = scale dS^T q, for a block of keys of one key-value head, with
// the queries of its heads passing by in tiles. Scores are computed transposed, so that P^T and dS^T are where the
// products need them. delta is what attention_dq.cuh left in the scratch.
#pragma once

#include "ops/cuda/attention_tile.cuh"

namespace norma::cuda::attention {

// Columns of dk and dv that a block has accumulators for; wider heads take several blocks.
__host__ __device__ constexpr int part_of(int width) { return width < 128 ? width : 128; }

// p (scores, transposed) becomes P^T, and dp (dP^T) becomes dS^T; both 0 where column - row < least or column >=
// columns, counted within the tile. lse (in powers of 2) and delta of each column are in shared memory.
template <class Lanes, int kM, int kN>
__device__ __forceinline__ void score_gradients(float (&p)[kM][kN][4], float (&dp)[kM][kN][4], float factor,
                                                const float* lse, const float* delta, bool hides, int least,
                                                int columns) {
  const int row = Lanes::g(), column = 2 * Lanes::t();
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    const float2 l = *reinterpret_cast<const float2*>(lse + n * 8 + column);
    const float2 d = *reinterpret_cast<const float2*>(delta + n * 8 + column);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        p[m][n][i] = power_of_two(fmaf(p[m][n][i], factor, (i & 1) != 0 ? -l.y : -l.x));
        dp[m][n][i] = p[m][n][i] * (dp[m][n][i] - ((i & 1) != 0 ? d.y : d.x));
      }
    }
  }
  if (!hides) return;
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = m * 16 + (i >> 1) * 8 + row, c = n * 8 + column + (i & 1);
        if (c - r < least || c >= columns) p[m][n][i] = dp[m][n][i] = 0.0f;
      }
    }
  }
}

// What block number `block` does; memory is shared.
template <class Math, int kWidth, int kM, int kQueries>
__device__ __forceinline__ void dkv_block(const AttentionCall& call, Access access, unsigned char* memory, int block) {
  using Element = typename Math::Element;
  using Lanes = typename Math::Lanes;
  constexpr int kStride = stride_of<Element>(kWidth), kN = kQueries / 8;
  constexpr int kPart = part_of(kWidth), kParts = kWidth / kPart, kC = kPart / 8;
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const int rows = static_cast<int>(blockDim.x) / kWarp * 16 * kM, blocks = (call.keys + rows - 1) / rows;
  const int column = block % kParts * kPart;
  const int first = block / kParts % blocks * rows;  // most work under a mask: the first
  const int pair = block / kParts / blocks;
  const int sample = pair / call.kv_heads, kv_head = pair % call.kv_heads, group = call.heads / call.kv_heads;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, warp_first = first + warp * 16 * kM;
  const bool causal = call.mask == KeyMask::causal;
  const int visible = visible_keys(call, member, sample);
  const int skipped = causal ? first / kQueries : 0;  // tiles of queries that see none of these keys
  const int tiles = (call.queries + kQueries - 1) / kQueries - skipped;
  const int steps = first < visible ? group * tiles : 0;  // head by head

  Element* const k_tile = reinterpret_cast<Element*>(memory);
  Element* const v_tile = k_tile + rows * kStride;
  const auto q_tile = [&](int step) { return v_tile + (rows + (step & 1) * 2 * kQueries) * kStride; };
  const auto dc_tile = [&](int step) { return q_tile(step) + kQueries * kStride; };
  float* const numbers = reinterpret_cast<float*>(v_tile + (rows + (steps > 1 ? 4 : 2) * kQueries) * kStride);
  const auto lse_of = [&](int step) { return numbers + (step & 1) * 2 * kQueries; };
  const auto delta_of = [&](int step) { return lse_of(step) + kQueries; };
  const auto load = [&](int step) {
    const int head = kv_head * group + step / tiles, begin = (skipped + step % tiles) * kQueries;
    load_tile<kWidth>(q_tile(step), query_rows<const Element>(call, member, call.q, sample, head), begin, kQueries,
                      call.queries, call.width, access);
    load_tile<kWidth>(dc_tile(step), context_rows<const Element>(call, member, call.dcontext, sample, head), begin,
                      kQueries, call.queries, call.width, access);
    const float* const lse = query_numbers(call, member, call.lse, sample, head);
    const float* const delta = query_numbers(call, member, call.scratch, sample, head);
    for (int i = static_cast<int>(threadIdx.x); i < kQueries; i += static_cast<int>(blockDim.x)) {
      const bool there = begin + i < call.queries;
      lse_of(step)[i] = there ? lse[begin + i] * kLog2E : 0.0f;
      delta_of(step)[i] = there ? delta[begin + i] : 0.0f;
    }
  };
  load_tile<kWidth>(k_tile, key_rows<const Element>(call, member, call.k, sample, kv_head), first, rows, visible,
                    call.width, access);
  load_tile<kWidth>(v_tile, key_rows<const Element>(call, member, call.v, sample, kv_head), first, rows, visible,
                    call.width, access);

  float dk[kM][kC][4], dv[kM][kC][4];
  for (bool careful = false;; careful = true) {  // as in the forward pass, for queries that do not see these keys
    clear(dk);
    clear(dv);
    if (steps > 0) load(0);
    for (int step = 0; step < steps; ++step) {
      wait_for_copies();
      __syncthreads();
      if (step + 1 < steps) load(step + 1);
      const int query = (skipped + step % tiles) * kQueries, diagonal = warp_first - query;  // column - row >= diagonal
      if (causal && diagonal >= kQueries) continue;
      const bool crossed = causal && diagonal > 1 - 16 * kM;
      float p[kM][kN][4], dp[kM][kN][4];
      clear(p);
      clear(dp);
      Math::template multiply_rows<kM, kN, kWidth, kStride>(p, k_tile + warp * 16 * kM * kStride, q_tile(step));
      Math::template multiply_rows<kM, kN, kWidth, kStride>(dp, v_tile + warp * 16 * kM * kStride, dc_tile(step));
      score_gradients<Lanes>(p, dp, call.scale * kLog2E, lse_of(step), delta_of(step),
                             crossed || query + kQueries > call.queries, causal ? diagonal : -16 * kM,
                             call.queries - query);
      if (careful && crossed) {
        const auto sees = [&](int r, int c) { return c - r >= diagonal; };
        multiply_seen<Lanes, kStride>(dv, p, dc_tile(step) + column, sees);
        multiply_seen<Lanes, kStride>(dk, dp, q_tile(step) + column, sees);
      } else {
        Math::template multiply_held<kStride>(dv, p, dc_tile(step) + column);
        Math::template multiply_held<kStride>(dk, dp, q_tile(step) + column);
      }
    }
    if (careful || !causal || __syncthreads_or(has_nan(dk) || has_nan(dv)) == 0) break;
  }
  float scale[kM][2], one[kM][2];
#pragma unroll
  for (int m = 0; m < kM; ++m) {
    scale[m][0] = scale[m][1] = call.scale;
    one[m][0] = one[m][1] = 1.0f;
  }
  if (call.dk >= 0) {
    store_tile<Lanes>(key_rows<Element>(call, member, call.dk, sample, kv_head), warp_first, visible, call.keys, column,
                      call.width, access, dk, scale);
  }
  if (call.dv >= 0) {
    store_tile<Lanes>(key_rows<Element>(call, member, call.dv, sample, kv_head), warp_first, visible, call.keys, column,
                      call.width, access, dv, one);
  }
}

template <class Math, int kWidth, int kM, int kQueries>
__global__ void __launch_bounds__(kMostThreads)
    attention_dkv_kernel(const __grid_constant__ AttentionCall call, Access access) {
  extern __shared__ __align__(16) unsigned char memory[];
  dkv_block<Math, kWidth, kM, kQueries>(call, access, memory, static_cast<int>(blockIdx.x));
}

// As for the gradient by the queries.
template <class Math>
int launch_dkv(const AttentionCall& call, Stream stream) {
  using Element = typename Math::Element;
  const Access access = access_of(call, sizeof(Element));
  return with_width(call.width, [&]<int kWidth>() {
    const auto launch = [&]<int kM, int kQueries>() {
      const int threads = threads_for(call.keys, 16 * kM, kWidth > 128 ? 2 : 4), rows = threads / kWarp * 16 * kM;
      const int stages = call.queries <= kQueries && call.heads == call.kv_heads ? 1 : 2;
      const std::int64_t shared = std::int64_t{2 * rows + 2 * stages * kQueries} * stride_of<Element>(kWidth) *
                                      static_cast<std::int64_t>(sizeof(Element)) +
                                  2 * stages * kQueries * static_cast<std::int64_t>(sizeof(float));
      return launch_kernel(
          attention_dkv_kernel<Math, kWidth, kM, kQueries>,
          std::int64_t{call.batch} * call.kv_heads * divide_up(call.keys, rows) * (kWidth / part_of(kWidth)), threads,
          shared, call, access, stream);
    };
    if constexpr (Math::kTensorCores && (kWidth == 32 || kWidth == 64)) {
      if (call.keys > 256) return launch.template operator()<2, 32>();
    }
    return launch.template operator()<1, (kWidth > 64 ? 32 : step_of<Element>(kWidth))>();
  });
}

}  // namespace norma::cuda::attention
