// A thread's piece of a row: V neighbouring elements in one access of up to 16 bytes, as f32 in registers.
// Loads and stores are plain on purpose. On an H200 loads that leave no line in the first-level cache cost 5 % of a
// copy's bandwidth, streaming ones 2 to 4 % of a norm's.
#pragma once

#include <cstdint>

#include "device/cuda/device.cuh"

namespace norma::cuda {

// Elements per access when rows of stream type X and branch type Y are walked together.
template <typename X, typename Y>
constexpr int kVector = 16 / static_cast<int>(sizeof(X) > sizeof(Y) ? sizeof(X) : sizeof(Y));

// V floats, four at a time, each `apart` times four floats behind the last.
template <int V>
__device__ __forceinline__ void store_quads(float4* to, int apart, const float (&v)[V]) {
  static_assert(V % 4 == 0);
#pragma unroll
  for (int j = 0; j < V; j += 4) to[j / 4 * apart] = make_float4(v[j], v[j + 1], v[j + 2], v[j + 3]);
}

template <int V>
__device__ __forceinline__ void load_quads(const float4* from, int apart, float (&v)[V]) {
#pragma unroll
  for (int j = 0; j < V; j += 4) {
    const float4 four = from[j / 4 * apart];
    v[j] = four.x;
    v[j + 1] = four.y;
    v[j + 2] = four.z;
    v[j + 3] = four.w;
  }
}

// V floats at 16-byte accesses, or the same number V times if there are none to read.
template <int V>
__device__ __forceinline__ void load_floats(const float* from, float otherwise, float (&v)[V]) {
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = otherwise;
  if (from != nullptr) load_quads(reinterpret_cast<const float4*>(from), 1, v);
}

// What v is after it has been stored as T.
template <typename T, int V>
__device__ __forceinline__ void round_to(float (&v)[V]) {
  if constexpr (sizeof(T) < 4) unpack<T, V>(pack<T, V>(v), v);
}

// Starts a copy of one access from global to shared memory. The same thread reads it after wait_for_copies: what a
// thread needs is copied by itself, so no barrier is needed between the two.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to_shared, const void* from) {
  const std::uint32_t to = static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared));
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(kBytes) : "memory");
  }
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kNewer>  // all committed groups but the newest kNewer
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewer) : "memory");
}

}  // namespace norma::cuda
