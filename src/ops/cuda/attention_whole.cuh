// The whole backward pass of a head in one block, for short sequences: queries, keys and values are all in shared
// memory, and each of the five products is computed once. First each warp has 16 queries: P, delta, dS and
// dq = scale dS k. Then it has 16 keys: dv = P^T dcontext and dk = scale dS^T q, with P and then dS turned over through
// shared memory.
#pragma once

#include "ops/cuda/attention_tile.cuh"

namespace norma::cuda::attention {

constexpr int kChunkRows = 32;       // keys, or queries, that a product takes at a time
constexpr int kMostWholeRows = 128;  // of queries and of keys

// p and ds are 0 where row - column < least or column >= columns, both counted within the chunk.
template <class Lanes, int kN>
__device__ __forceinline__ void hide_chunk(float (&p)[1][kN][4], float (&ds)[1][kN][4], int least, int columns) {
#pragma unroll
  for (int n = 0; n < kN; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = (i >> 1) * 8 + Lanes::g(), c = n * 8 + 2 * Lanes::t() + (i & 1);
      if (r - c < least || c >= columns) p[0][n][i] = ds[0][n][i] = 0.0f;
    }
  }
}

// turned[queries, stride]: 16 rows of a chunk as a warp of queries has them, 0 from query `end` on.
template <class Lanes, int kN>
__device__ __forceinline__ void store_chunk(float* turned, int stride, int query, int key, int end,
                                            const float (&p)[1][kN][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = query + half * 8 + Lanes::g();
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      store_pair(turned + row * stride + key + n * 8 + 2 * Lanes::t(), row < end ? p[0][n][2 * half] : 0.0f,
                 row < end ? p[0][n][2 * half + 1] : 0.0f);
    }
  }
}
// And as a warp of keys needs them: rows are keys, columns queries.
template <class Lanes, int kN>
__device__ __forceinline__ void load_chunk(const float* turned, int stride, int query, int key, float (&p)[1][kN][4]) {
#pragma unroll
  for (int n = 0; n < kN; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = n * 8 + 2 * Lanes::t() + (i & 1);
      p[0][n][i] = turned[(query + column) * stride + key + (i >> 1) * 8 + Lanes::g()];
    }
  }
}

// c[16 keys, kWidth] = turned^T b over all queries that may see a key from `key` on.
template <class Math, int kWidth>
__device__ __forceinline__ void multiply_turned(float (&c)[1][kWidth / 8][4], const float* turned, int stride, int key,
                                                int queries, bool causal, const typename Math::Element* b) {
  using Lanes = typename Math::Lanes;
  constexpr int kStride = stride_of<typename Math::Element>(kWidth), kN = kChunkRows / 8;
  const int first = causal ? key / kChunkRows * kChunkRows : 0;
  for (bool careful = false;; careful = true) {  // as in the forward pass, here for the warp alone
    clear(c);
    for (int query = first; query < queries; query += kChunkRows) {
      float p[1][kN][4];
      load_chunk<Lanes>(turned, stride, query, key, p);
      if (careful && query == first) {
        const int diagonal = key - query;
        multiply_seen<Lanes, kStride>(c, p, b + query * kStride, [&](int r, int q) { return q - r >= diagonal; });
      } else {
        Math::template multiply_held<kStride>(c, p, b + query * kStride);
      }
    }
    if (careful || !causal || !__any_sync(kAll, has_nan(c))) break;
  }
}

template <class Math, int kWidth, int kChunks>
__global__ void __launch_bounds__(kWarp * 2 * kChunks)
    attention_whole_kernel(const __grid_constant__ AttentionCall call, Access access) {
  using Element = typename Math::Element;
  using Lanes = typename Math::Lanes;
  constexpr int kStride = stride_of<Element>(kWidth), kN = kChunkRows / 8, kC = kWidth / 8;
  extern __shared__ __align__(16) unsigned char memory[];
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const int warps = static_cast<int>(blockDim.x) / kWarp, rows = warps * 16, turned_stride = rows + 4;
  const int sample = static_cast<int>(blockIdx.x) / call.heads, head = static_cast<int>(blockIdx.x) % call.heads;
  const bool causal = call.mask == KeyMask::causal;
  const int visible = visible_keys(call, member, sample);
  // Under a mask, warps with few keys and many share a scheduler: 0 and 7, 1 and 6, ...
  const int warp = static_cast<int>(threadIdx.x) / kWarp, first = (warp < 4 ? warp : warps + 3 - warp) * 16;

  Element* const q_tile = reinterpret_cast<Element*>(memory);
  Element* const k_tile = q_tile + rows * kStride;
  Element* const v_tile = k_tile + rows * kStride;
  Element* const dc_tile = v_tile + rows * kStride;
  float* const turned = reinterpret_cast<float*>(dc_tile + rows * kStride);
  load_tile<kWidth>(q_tile, query_rows<const Element>(call, member, call.q, sample, head), 0, rows, call.queries,
                    call.width, access);
  load_tile<kWidth>(k_tile, key_rows<const Element>(call, member, call.k, sample, head), 0, rows, visible, call.width,
                    access);
  load_tile<kWidth>(v_tile, key_rows<const Element>(call, member, call.v, sample, head), 0, rows, visible, call.width,
                    access);
  load_tile<kWidth>(dc_tile, context_rows<const Element>(call, member, call.dcontext, sample, head), 0, rows,
                    call.queries, call.width, access);
  float lse[2], delta[2] = {0.0f, 0.0f};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + half * 8 + Lanes::g();
    lse[half] = row < call.queries ? query_numbers(call, member, call.lse, sample, head)[row] * kLog2E : 0.0f;
  }
  wait_for_copies();
  __syncthreads();

  // Chunks of keys that a query of this warp may see. A warp of keys reads no others of this warp's queries.
  const int seen_keys = first >= call.queries ? 0 : causal ? min(visible, first + 16) : visible;
  const auto hides = [&](int key) { return (causal && key + kChunkRows - 1 > first) || key + kChunkRows > visible; };
  const float factor = call.scale * kLog2E;
  float p[kChunks][1][kN][4], ds[kChunks][1][kN][4];
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const int key = chunk * kChunkRows;
    clear(p[chunk]);
    clear(ds[chunk]);
    if (key >= seen_keys) continue;
    Math::template multiply_rows<1, kN, kWidth, kStride>(p[chunk], q_tile + first * kStride, k_tile + key * kStride);
    Math::template multiply_rows<1, kN, kWidth, kStride>(ds[chunk], dc_tile + first * kStride, v_tile + key * kStride);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        p[chunk][0][n][i] = power_of_two(fmaf(p[chunk][0][n][i], factor, -lse[i >> 1]));
      }
    }
    if (hides(key)) hide_chunk<Lanes>(p[chunk], ds[chunk], causal ? key - first : -kChunkRows, visible - key);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) delta[i >> 1] = fmaf(p[chunk][0][n][i], ds[chunk][0][n][i], delta[i >> 1]);
    }
  }
  delta[0] = row_sum<Lanes>(delta[0]);
  delta[1] = row_sum<Lanes>(delta[1]);
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const int key = chunk * kChunkRows;
    if (key >= seen_keys) continue;
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) ds[chunk][0][n][i] = p[chunk][0][n][i] * (ds[chunk][0][n][i] - delta[i >> 1]);
    }
    if (hides(key)) hide_chunk<Lanes>(p[chunk], ds[chunk], causal ? key - first : -kChunkRows, visible - key);
  }

  const float scale[1][2] = {{call.scale, call.scale}}, one[1][2] = {{1.0f, 1.0f}};
  if (call.dq >= 0) {
    float dq[1][kC][4];
    for (bool careful = false;; careful = true) {
      clear(dq);
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        const int key = chunk * kChunkRows;
        if (key >= seen_keys) continue;
        if (careful) {
          multiply_seen<Lanes, kStride>(dq, ds[chunk], k_tile + key * kStride,
                                        [&](int r, int c) { return r - c >= key - first; });
        } else {
          Math::template multiply_held<kStride>(dq, ds[chunk], k_tile + key * kStride);
        }
      }
      if (careful || !causal || !__any_sync(kAll, has_nan(dq))) break;
    }
    store_tile<Lanes>(query_rows<Element>(call, member, call.dq, sample, head), first, visible == 0 ? 0 : call.queries,
                      call.queries, 0, call.width, access, dq, scale);
  }

  float gradient[1][kC][4];
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const int key = chunk * kChunkRows;
    if (key < rows) store_chunk<Lanes>(turned, turned_stride, first, key, call.queries, p[chunk]);
  }
  __syncthreads();
  if (call.dv >= 0) {
    multiply_turned<Math, kWidth>(gradient, turned, turned_stride, first, call.queries, causal, dc_tile);
    store_tile<Lanes>(key_rows<Element>(call, member, call.dv, sample, head), first, visible, call.keys, 0, call.width,
                      access, gradient, one);
  }
  if (call.dk < 0) return;
  __syncthreads();
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const int key = chunk * kChunkRows;
    if (key < rows) store_chunk<Lanes>(turned, turned_stride, first, key, call.queries, ds[chunk]);
  }
  __syncthreads();
  multiply_turned<Math, kWidth>(gradient, turned, turned_stride, first, call.queries, causal, q_tile);
  store_tile<Lanes>(key_rows<Element>(call, member, call.dk, sample, head), first, visible, call.keys, 0, call.width,
                    access, gradient, scale);
}

inline bool fits_whole(const AttentionCall& call) {
  return call.heads == call.kv_heads && call.width <= 64 && std::max(call.queries, call.keys) <= kMostWholeRows;
}

template <class Math>
int launch_whole(const AttentionCall& call, Stream stream) {
  using Element = typename Math::Element;
  const Access access = access_of(call, sizeof(Element));
  const int rows = static_cast<int>(round_up(std::max(call.queries, call.keys), kChunkRows));
  const auto launch = [&]<int kWidth>() {
    const std::int64_t shared =
        std::int64_t{4 * rows} * stride_of<Element>(kWidth) * static_cast<std::int64_t>(sizeof(Element)) +
        std::int64_t{rows} * (rows + 4) * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t blocks = std::int64_t{call.batch} * call.heads;
    const auto kernel = rows <= 64 ? attention_whole_kernel<Math, kWidth, 2> : attention_whole_kernel<Math, kWidth, 4>;
    return launch_kernel(kernel, blocks, rows / 16 * kWarp, shared, call, access, stream);
  };
  if (call.width <= 16) return launch.template operator()<16>();
  if (call.width <= 32) return launch.template operator()<32>();
  return launch.template operator()<64>();
}

}  // namespace norma::cuda::attention
