// What the attention kernels share: which part of the work a block has, tiles on their way into shared memory, and
// accumulators on their way out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ops/cuda/attention_launch.h"
#include "ops/cuda/attention_math.cuh"

namespace norma::cuda::attention {

constexpr int kMostThreads = 128;
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

// How rows of tensors may be read and written.
enum class Access { chunks, elements };  // 16 bytes at a time, or one element

// 2^x, 0 below 2^-126; infinities and NaN as they should be.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Over the four threads that share a row of an accumulator.
template <class Lanes>
__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(kAll, x, Lanes::kStep);
  return x + __shfl_xor_sync(kAll, x, 2 * Lanes::kStep);
}
template <class Lanes>
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAll, x, Lanes::kStep));
  return fmaxf(x, __shfl_xor_sync(kAll, x, 2 * Lanes::kStep));
}

// The member of this block, or null if it is not active.
__device__ __forceinline__ std::byte* member_of(const Members& members) {
  return skipped(members, blockIdx.y) ? nullptr : base_of(members, blockIdx.y);
}

// Keys of a sample that may be seen at all.
__device__ __forceinline__ int visible_keys(const AttentionCall& call, std::byte* member, int sample) {
  if (call.lengths < 0) return call.keys;
  return max(0, min(call.keys, at<const std::int32_t>(member, call.lengths)[sample]));
}

// Rows of one head of one sample, and the elements from one to the next.
template <class Element>
struct HeadRows {
  Element* first;
  std::int64_t row;
};

template <class Element>
__device__ __forceinline__ HeadRows<Element> query_rows(const AttentionCall& call, std::byte* member,
                                                        std::int64_t offset, int sample, int head) {
  return {
      at<Element>(member, offset) + std::int64_t{sample} * call.queries * call.q_row + std::int64_t{head} * call.width,
      call.q_row};
}
template <class Element>
__device__ __forceinline__ HeadRows<Element> key_rows(const AttentionCall& call, std::byte* member, std::int64_t offset,
                                                      int sample, int kv_head) {
  return {
      at<Element>(member, offset) + std::int64_t{sample} * call.keys * call.kv_row + std::int64_t{kv_head} * call.width,
      call.kv_row};
}
template <class Element>
__device__ __forceinline__ HeadRows<Element> context_rows(const AttentionCall& call, std::byte* member,
                                                          std::int64_t offset, int sample, int head) {
  const std::int64_t row = std::int64_t{call.heads} * call.width;
  return {at<Element>(member, offset) + std::int64_t{sample} * call.queries * row + std::int64_t{head} * call.width,
          row};
}
// Of lse and of the scratch: one f32 per query.
__device__ __forceinline__ float* query_numbers(const AttentionCall& call, std::byte* member, std::int64_t offset,
                                                int sample, int head) {
  return at<float>(member, offset) + (std::int64_t{sample} * call.heads + head) * call.queries;
}

__device__ __forceinline__ void copy_chunk(void* to, const void* from, int bytes) {  // 16 or 0; the rest is zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
               : "memory");
}
// All copies of this thread have arrived; a barrier makes those of others visible.
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// tile[rows, kWidth] = rows [begin, begin + rows) of a head, with zeros from row `end` on and beyond the head's width.
// The whole block together; wait_for_copies() and a barrier before the tile is read.
template <int kWidth, class Element>
__device__ __forceinline__ void load_tile(Element* tile, const HeadRows<const Element>& from, int begin, int rows,
                                          int end, int width, Access access) {
  constexpr int kChunk = chunk_of<Element>(), kChunks = kWidth / kChunk, kStride = stride_of<Element>(kWidth);
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  if (access == Access::chunks) {
    for (int i = thread; i < rows * kChunks; i += threads) {
      const int row = i / kChunks, column = i % kChunks * kChunk;
      const bool there = begin + row < end && column < width;
      const Element* const source = there ? from.first + (begin + row) * from.row + column : from.first;
      copy_chunk(tile + row * kStride + column, source, there ? 16 : 0);
    }
  } else {
    for (int i = thread; i < rows * kWidth; i += threads) {
      const int row = i / kWidth, column = i % kWidth;
      const bool there = begin + row < end && column < width;
      tile[row * kStride + column] = there ? from.first[(begin + row) * from.row + column] : Element(0.0f);
    }
  }
}

__device__ __forceinline__ void store_pair(float* to, float x, float y) {
  *reinterpret_cast<float2*>(to) = make_float2(x, y);
}
__device__ __forceinline__ void store_pair(__nv_bfloat16* to, float x, float y) {
  *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(x, y);
}

// Rows [begin, begin + 16 kM) of a head, columns from `column` on = factor * c; rows from `live` on are 0, rows from
// `end` on do not exist.
template <class Lanes, int kM, int kN, class Element>
__device__ __forceinline__ void store_tile(const HeadRows<Element>& to, int begin, int live, int end, int column,
                                           int width, Access access, const float (&c)[kM][kN][4],
                                           const float (&factor)[kM][2]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = begin + m * 16 + half * 8 + Lanes::g();
      if (row >= end) continue;
      Element* const line = to.first + row * to.row;
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const int first = column + n * 8 + 2 * Lanes::t();
        const float x = row < live ? c[m][n][2 * half] * factor[m][half] : 0.0f;
        const float y = row < live ? c[m][n][2 * half + 1] * factor[m][half] : 0.0f;
        if (access == Access::chunks) {
          if (first < width) store_pair(line + first, x, y);
        } else {
          if (first < width) store_one(line + first, x);
          if (first + 1 < width) store_one(line + first + 1, y);
        }
      }
    }
  }
}

template <int kM, int kN>
__device__ __forceinline__ bool has_nan(const float (&c)[kM][kN][4]) {
  bool found = false;
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) found = found || c[m][n][i] != c[m][n][i];
    }
  }
  return found;
}

// What the launches decide.

// Threads so that a block has as many rows as there are, up to `most` warps of 16 kM rows.
inline int threads_for(int rows, int rows_per_warp, int most_warps) {
  return kWarp * static_cast<int>(std::min<std::int64_t>(most_warps, divide_up(rows, rows_per_warp)));
}

// Keys (or queries) per step of the loop over them: as many as registers and shared memory leave room for.
template <class Element>
__host__ __device__ constexpr int step_of(int width) {
  if (width <= 16 || width > 128) return 32;
  return width <= 64 || sizeof(Element) == 2 ? 64 : 32;
}

inline Access access_of(const AttentionCall& call, std::int64_t element) {
  const bool chunks = aligned(16, {call.q, call.k, call.v, call.context, call.dcontext, call.dq, call.dk, call.dv}) &&
                      aligned(16, {call.width * element, call.q_row * element, call.kv_row * element});
  return chunks ? Access::chunks : Access::elements;
}

// Kernels take the call and the access.
template <class Kernel>
int launch_kernel(Kernel kernel, std::int64_t blocks, int threads, std::int64_t shared_bytes, const AttentionCall& call,
                  Access access, Stream stream) {
  if (shared_bytes > 48 * 1024) {
    const cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (status != cudaSuccess) return static_cast<int>(status);
  }
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(call.members.count));
  kernel<<<grid, threads, static_cast<std::size_t>(shared_bytes), stream>>>(call, access);
  return launched();
}

// Calls run.operator()<kWidth>() with the narrowest tile that holds a head.
template <class Run>
int with_width(int width, const Run& run) {
  if (width <= 16) return run.template operator()<16>();
  if (width <= 32) return run.template operator()<32>();
  if (width <= 64) return run.template operator()<64>();
  if (width <= 128) return run.template operator()<128>();
  return run.template operator()<256>();
}

}  // namespace norma::cuda::attention
