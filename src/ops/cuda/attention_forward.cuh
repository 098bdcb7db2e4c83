// context = softmax(scale q k^T) v: a block of queries of one head, keys and values passing by in tiles, the softmax
// corrected as larger scores turn up (FlashAttention, Dao et al. 2022). Scores never leave the registers.
#pragma once

#include "ops/cuda/attention_tile.cuh"

namespace norma::cuda::attention {

// Largest score and sum of exponentials, so far, of the rows that a thread has in an accumulator. Scores are
// exponents of 2 when multiplied by a factor above 0.
template <class Lanes, int kM>
struct Softmax {
  float largest[kM][2], sum[kM][2];  // the sum over this thread's columns only

  __device__ __forceinline__ Softmax() {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        largest[m][half] = -INFINITY;
        sum[m][half] = 0.0f;
      }
    }
  }

  // Scores (hidden ones -infinity) become exponentials; what was summed with them so far is corrected.
  template <int kN, int kC>
  __device__ __forceinline__ void add(float (&scores)[kM][kN][4], float factor, float (&context)[kM][kC][4]) {
    float correction[kM][2];
    bool corrects = false;
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float top = largest[m][half];
#pragma unroll
        for (int n = 0; n < kN; ++n) top = fmaxf(top, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
        top = row_max<Lanes>(top);
        const float shift = top == -INFINITY ? 0.0f : top * factor;  // only -infinity so far: exponentials are 0
        correction[m][half] = top == largest[m][half] ? 1.0f : power_of_two(fmaf(largest[m][half], factor, -shift));
        corrects = corrects || top != largest[m][half];
        largest[m][half] = top;
        float total = 0.0f;
#pragma unroll
        for (int n = 0; n < kN; ++n) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& score = scores[m][n][2 * half + e];
            score = power_of_two(fmaf(score, factor, -shift));
            total += score;
          }
        }
        sum[m][half] = fmaf(sum[m][half], correction[m][half], total);
      }
    }
    if (!__any_sync(kAll, corrects)) return;  // after some tiles larger scores are rare
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kC; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) context[m][n][i] *= correction[m][i >> 1];
      }
    }
  }
};

// -infinity where row - column < least or column >= columns, both counted within the tile.
template <class Lanes, int kM, int kN>
__device__ __forceinline__ void hide_scores(float (&scores)[kM][kN][4], int least, int columns) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = m * 16 + (i >> 1) * 8 + Lanes::g(), end = min(columns, row - least + 1) - 2 * Lanes::t();
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        if (n * 8 + (i & 1) >= end) scores[m][n][i] = -INFINITY;
      }
    }
  }
}
template <int kM, int kN>
__device__ __forceinline__ void scale_all(float (&scores)[kM][kN][4], float factor) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[m][n][i] *= factor;
    }
  }
}

// What block number `block` does; memory is shared.
template <class Math, int kWidth, int kM, int kKeys>
__device__ __forceinline__ void forward_block(const AttentionCall& call, Access access, unsigned char* memory,
                                              int block) {
  using Element = typename Math::Element;
  using Lanes = typename Math::Lanes;
  constexpr int kStride = stride_of<Element>(kWidth), kN = kKeys / 8, kC = kWidth / 8;
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const int rows = static_cast<int>(blockDim.x) / kWarp * 16 * kM, blocks = (call.queries + rows - 1) / rows;
  const int pair = block / blocks;
  const int first = (blocks - 1 - block % blocks) * rows;  // most work under a mask: the last
  const int sample = pair / call.heads, head = pair % call.heads, kv_head = head / (call.heads / call.kv_heads);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, warp_first = first + warp * 16 * kM;
  const bool causal = call.mask == KeyMask::causal;
  const int visible = visible_keys(call, member, sample);
  const int tiles = ((causal ? min(visible, first + rows) : visible) + kKeys - 1) / kKeys;
  const auto k = key_rows<const Element>(call, member, call.k, sample, kv_head);
  const auto v = key_rows<const Element>(call, member, call.v, sample, kv_head);

  Element* const q_tile = reinterpret_cast<Element*>(memory);
  const auto k_tile = [&](int tile) { return q_tile + (rows + (tile & 1) * 2 * kKeys) * kStride; };
  const auto v_tile = [&](int tile) { return k_tile(tile) + kKeys * kStride; };
  const auto load = [&](int tile) {
    load_tile<kWidth>(k_tile(tile), k, tile * kKeys, kKeys, visible, call.width, access);
    load_tile<kWidth>(v_tile(tile), v, tile * kKeys, kKeys, visible, call.width, access);
  };
  load_tile<kWidth>(q_tile, query_rows<const Element>(call, member, call.q, sample, head), first, rows, call.queries,
                    call.width, access);

  const float factor = call.scale > 0.0f ? call.scale * kLog2E : 1.0f;
  float context[kM][kC][4];
  Softmax<Lanes, kM> softmax;
  // A value that the mask hides adds 0 times itself: nothing, unless it is infinite or NaN. That shows in the end, and
  // then everything is done again with care.
  for (bool careful = false;; careful = true) {
    clear(context);
    softmax = Softmax<Lanes, kM>();
    if (tiles > 0) load(0);
    for (int tile = 0; tile < tiles; ++tile) {
      wait_for_copies();
      __syncthreads();
      if (tile + 1 < tiles) load(tile + 1);
      const int key = tile * kKeys, diagonal = key - warp_first;  // row - column >= diagonal: seen
      if (causal && diagonal >= 16 * kM) continue;
      float scores[kM][kN][4];
      clear(scores);
      Math::template multiply_rows<kM, kN, kWidth, kStride>(scores, q_tile + warp * 16 * kM * kStride, k_tile(tile));
      const bool crossed = causal && diagonal > 1 - kKeys;
      if (call.scale <= 0.0f) scale_all(scores, call.scale * kLog2E);
      if (crossed || key + kKeys > visible) {
        hide_scores<Lanes>(scores, causal ? diagonal : -kKeys, visible - key);
      }
      softmax.add(scores, factor, context);
      if (careful && crossed) {
        multiply_seen<Lanes, kStride>(context, scores, v_tile(tile), [&](int r, int c) { return r - c >= diagonal; });
      } else {
        Math::template multiply_held<kStride>(context, scores, v_tile(tile));
      }
    }
    if (careful || !causal || __syncthreads_or(has_nan(context)) == 0) break;
  }

  float inverse[kM][2];
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = row_sum<Lanes>(softmax.sum[m][half]), largest = softmax.largest[m][half];
      inverse[m][half] = 1.0f / total;
      const int row = warp_first + m * 16 + half * 8 + Lanes::g();
      if (call.lse >= 0 && Lanes::t() == 0 && row < call.queries) {
        const float seen = largest == -INFINITY ? NAN : fmaf(largest * factor, kLn2, logf(total));
        query_numbers(call, member, call.lse, sample, head)[row] = visible == 0 ? -INFINITY : seen;
      }
    }
  }
  store_tile<Lanes>(context_rows<Element>(call, member, call.context, sample, head), warp_first,
                    visible == 0 ? 0 : call.queries, call.queries, 0, call.width, access, context, inverse);
}

template <class Math, int kWidth, int kM, int kKeys>
__global__ void __launch_bounds__(kMostThreads)
    attention_forward_kernel(const __grid_constant__ AttentionCall call, Access access) {
  extern __shared__ __align__(16) unsigned char memory[];
  forward_block<Math, kWidth, kM, kKeys>(call, access, memory, static_cast<int>(blockIdx.x));
}

// Long sequences: warps with twice the rows read keys and values half as often.
template <class Math>
int launch_forward(const AttentionCall& call, Stream stream) {
  using Element = typename Math::Element;
  const Access access = access_of(call, sizeof(Element));
  return with_width(call.width, [&]<int kWidth>() {
    constexpr int kKeys = step_of<Element>(kWidth);
    const auto launch = [&]<int kM>() {
      const int threads = threads_for(call.queries, 16 * kM, 4), rows = threads / kWarp * 16 * kM;
      const std::int64_t shared = std::int64_t{rows + (call.keys > kKeys ? 4 : 2) * kKeys} *
                                  stride_of<Element>(kWidth) * static_cast<std::int64_t>(sizeof(Element));
      return launch_kernel(attention_forward_kernel<Math, kWidth, kM, kKeys>,
                           std::int64_t{call.batch} * call.heads * divide_up(call.queries, rows), threads, shared, call,
                           access, stream);
    };
    if constexpr (kWidth == 32 || kWidth == 64) {
      if (call.queries > 256) return launch.template operator()<2>();
    }
    return launch.template operator()<1>();
  });
}

}  // namespace norma::cuda::attention
