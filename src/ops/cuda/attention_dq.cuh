// Gradient by the queries: dq = scale dS k, dS = P (dP - delta), dP = dcontext v^T, P = exp(scale q k^T - lse), for a
// block of queries of one head. delta, the sum of P dP over keys, is found in a first pass over the keys and left in
// the scratch for the gradients by keys and values; with a single tile of keys there is no second pass.
#pragma once

#include "ops/cuda/attention_tile.cuh"

namespace norma::cuda::attention {

// p and dp are 0 where row - column < least or column >= columns, both counted within the tile.
template <class Lanes, int kM, int kN>
__device__ __forceinline__ void hide(float (&p)[kM][kN][4], float (&dp)[kM][kN][4], int least, int columns) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = m * 16 + (i >> 1) * 8 + Lanes::g(), end = min(columns, row - least + 1) - 2 * Lanes::t();
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        if (n * 8 + (i & 1) >= end) p[m][n][i] = dp[m][n][i] = 0.0f;
      }
    }
  }
}

// What block number `block` does; memory is shared.
template <class Math, int kWidth, int kM, int kKeys>
__device__ __forceinline__ void dq_block(const AttentionCall& call, Access access, unsigned char* memory, int block) {
  using Element = typename Math::Element;
  using Lanes = typename Math::Lanes;
  constexpr int kStride = stride_of<Element>(kWidth), kN = kKeys / 8, kC = kWidth / 8;
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const int rows = static_cast<int>(blockDim.x) / kWarp * 16 * kM, blocks = (call.queries + rows - 1) / rows;
  const int pair = block / blocks;
  const int first = (blocks - 1 - block % blocks) * rows;
  const int sample = pair / call.heads, head = pair % call.heads, kv_head = head / (call.heads / call.kv_heads);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, warp_first = first + warp * 16 * kM;
  const bool causal = call.mask == KeyMask::causal;
  const int visible = visible_keys(call, member, sample);
  const int tiles = ((causal ? min(visible, first + rows) : visible) + kKeys - 1) / kKeys;
  const int steps = tiles == 1 || call.dq < 0 ? tiles : 2 * tiles;  // of both passes
  const auto k = key_rows<const Element>(call, member, call.k, sample, kv_head);
  const auto v = key_rows<const Element>(call, member, call.v, sample, kv_head);

  Element* const q_tile = reinterpret_cast<Element*>(memory);
  Element* const dc_tile = q_tile + rows * kStride;
  const auto k_tile = [&](int step) { return dc_tile + (rows + (step & 1) * 2 * kKeys) * kStride; };
  const auto v_tile = [&](int step) { return k_tile(step) + kKeys * kStride; };
  const auto load = [&](int step) {
    const int begin = (step < tiles ? step : step - tiles) * kKeys;
    load_tile<kWidth>(k_tile(step), k, begin, kKeys, visible, call.width, access);
    load_tile<kWidth>(v_tile(step), v, begin, kKeys, visible, call.width, access);
  };
  load_tile<kWidth>(q_tile, query_rows<const Element>(call, member, call.q, sample, head), first, rows, call.queries,
                    call.width, access);
  load_tile<kWidth>(dc_tile, context_rows<const Element>(call, member, call.dcontext, sample, head), first, rows,
                    call.queries, call.width, access);

  const float factor = call.scale * kLog2E;
  float lse[kM][2], delta[kM][2];
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_first + m * 16 + half * 8 + Lanes::g();
      lse[m][half] = row < call.queries ? query_numbers(call, member, call.lse, sample, head)[row] * kLog2E : 0.0f;
      delta[m][half] = 0.0f;
    }
  }
  const auto finish_delta = [&] {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        delta[m][half] = row_sum<Lanes>(delta[m][half]);
        const int row = warp_first + m * 16 + half * 8 + Lanes::g();
        if (Lanes::t() == 0 && row < call.queries) {
          query_numbers(call, member, call.scratch, sample, head)[row] = delta[m][half];
        }
      }
    }
  };

  float dq[kM][kC][4];
  for (bool careful = false;; careful = true) {  // as in the forward pass, for hidden keys
    clear(dq);
    if (steps > 0) load(0);
    for (int step = 0; step < steps; ++step) {
      wait_for_copies();
      __syncthreads();
      if (step + 1 < steps) load(step + 1);
      const bool first_pass = step < tiles;
      const int key = (first_pass ? step : step - tiles) * kKeys, diagonal = key - warp_first;
      const bool unseen = causal && diagonal >= 16 * kM, crossed = causal && diagonal > 1 - kKeys;
      float p[kM][kN][4], dp[kM][kN][4];
      if (!unseen) {
        clear(p);
        clear(dp);
        Math::template multiply_rows<kM, kN, kWidth, kStride>(p, q_tile + warp * 16 * kM * kStride, k_tile(step));
        Math::template multiply_rows<kM, kN, kWidth, kStride>(dp, dc_tile + warp * 16 * kM * kStride, v_tile(step));
#pragma unroll
        for (int m = 0; m < kM; ++m) {
#pragma unroll
          for (int n = 0; n < kN; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) p[m][n][i] = power_of_two(fmaf(p[m][n][i], factor, -lse[m][i >> 1]));
          }
        }
        if (crossed || key + kKeys > visible) hide<Lanes>(p, dp, causal ? diagonal : -kKeys, visible - key);
      }
      if (first_pass && !careful) {
        if (!unseen) {
#pragma unroll
          for (int m = 0; m < kM; ++m) {
#pragma unroll
            for (int n = 0; n < kN; ++n) {
#pragma unroll
              for (int i = 0; i < 4; ++i) delta[m][i >> 1] = fmaf(p[m][n][i], dp[m][n][i], delta[m][i >> 1]);
            }
          }
        }
        if (step + 1 == tiles) finish_delta();
      }
      if (unseen || (first_pass && steps > 1) || call.dq < 0) continue;
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int n = 0; n < kN; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) p[m][n][i] *= dp[m][n][i] - delta[m][i >> 1];  // a NaN is its own row's
        }
      }
      if (careful && crossed) {
        multiply_seen<Lanes, kStride>(dq, p, k_tile(step), [&](int r, int c) { return r - c >= diagonal; });
      } else {
        Math::template multiply_held<kStride>(dq, p, k_tile(step));
      }
    }
    if (careful || !causal || __syncthreads_or(has_nan(dq)) == 0) break;
  }
  if (call.dq < 0) return;
  float scale[kM][2];
#pragma unroll
  for (int m = 0; m < kM; ++m) scale[m][0] = scale[m][1] = call.scale;
  store_tile<Lanes>(query_rows<Element>(call, member, call.dq, sample, head), warp_first,
                    visible == 0 ? 0 : call.queries, call.queries, 0, call.width, access, dq, scale);
}

template <class Math, int kWidth, int kM, int kKeys>
__global__ void __launch_bounds__(kMostThreads)
    attention_dq_kernel(const __grid_constant__ AttentionCall call, Access access) {
  extern __shared__ __align__(16) unsigned char memory[];
  dq_block<Math, kWidth, kM, kKeys>(call, access, memory, static_cast<int>(blockIdx.x));
}

// Long sequences on tensor cores: warps with twice the rows and half the keys at a time read less shared memory for the
// same work.
template <class Math>
int launch_dq(const AttentionCall& call, Stream stream) {
  using Element = typename Math::Element;
  const Access access = access_of(call, sizeof(Element));
  return with_width(call.width, [&]<int kWidth>() {
    const auto launch = [&]<int kM, int kKeys>() {
      const int threads = threads_for(call.queries, 16 * kM, kWidth > 128 ? 2 : 4), rows = threads / kWarp * 16 * kM;
      const std::int64_t shared = std::int64_t{2 * rows + (call.keys > kKeys ? 4 : 2) * kKeys} *
                                  stride_of<Element>(kWidth) * static_cast<std::int64_t>(sizeof(Element));
      return launch_kernel(attention_dq_kernel<Math, kWidth, kM, kKeys>,
                           std::int64_t{call.batch} * call.heads * divide_up(call.queries, rows), threads, shared, call,
                           access, stream);
    };
    if constexpr (Math::kTensorCores && (kWidth == 32 || kWidth == 64)) {
      if (call.queries > 256) return launch.template operator()<2, 32>();
    }
    return launch.template operator()<1, (kWidth > 64 ? 32 : step_of<Element>(kWidth))>();
  });
}

}  // namespace norma::cuda::attention
