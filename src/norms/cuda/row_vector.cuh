// A thread's piece of a row: V neighbouring elements in one access of up to 16 bytes, as f32 in registers.
// Loads and stores are plain on purpose. On an H200 loads that leave no line in the first-level cache cost 5 % of a
// copy's bandwidth, streaming ones 2 to 4 % of a norm's.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace norma::cuda {

template <int kBytes>
struct RawBytes;
template <>
struct RawBytes<2> {
  using Type = std::uint16_t;
};
template <>
struct RawBytes<4> {
  using Type = std::uint32_t;
};
template <>
struct RawBytes<8> {
  using Type = uint2;
};
template <>
struct RawBytes<16> {
  using Type = uint4;
};

template <typename T, int V>
using Raw = typename RawBytes<static_cast<int>(sizeof(T)) * V>::Type;

// Elements per access when rows of stream type X and branch type Y are walked together.
template <typename X, typename Y>
constexpr int kVector = 16 / static_cast<int>(sizeof(X) > sizeof(Y) ? sizeof(X) : sizeof(Y));

template <typename T, int V>
__device__ __forceinline__ void unpack(Raw<T, V> raw, float (&v)[V]) {
  if constexpr (sizeof(T) == 4) {
    const float* const f = reinterpret_cast<const float*>(&raw);
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] = f[j];
  } else if constexpr (V == 1) {
    v[0] = __uint_as_float(static_cast<std::uint32_t>(raw) << 16);
  } else {
    const std::uint32_t* const words = reinterpret_cast<const std::uint32_t*>(&raw);
#pragma unroll
    for (int j = 0; j < V / 2; ++j) {
      v[2 * j] = __uint_as_float(words[j] << 16);
      v[2 * j + 1] = __uint_as_float(words[j] & 0xffff0000u);
    }
  }
}

template <typename T, int V>
__device__ __forceinline__ Raw<T, V> pack(const float (&v)[V]) {
  Raw<T, V> raw;
  if constexpr (sizeof(T) == 4) {
    float* const f = reinterpret_cast<float*>(&raw);
#pragma unroll
    for (int j = 0; j < V; ++j) f[j] = v[j];
  } else if constexpr (V == 1) {
    raw = __bfloat16_as_ushort(__float2bfloat16_rn(v[0]));
  } else {
    __nv_bfloat162* const pairs = reinterpret_cast<__nv_bfloat162*>(&raw);
#pragma unroll
    for (int j = 0; j < V / 2; ++j) pairs[j] = __floats2bfloat162_rn(v[2 * j], v[2 * j + 1]);
  }
  return raw;
}

template <typename T, int V>
__device__ __forceinline__ Raw<T, V> load_raw(const T* from) {
  return *reinterpret_cast<const Raw<T, V>*>(from);
}

template <typename T, int V>
__device__ __forceinline__ void load(const T* from, float (&v)[V]) {
  unpack<T, V>(load_raw<T, V>(from), v);
}

template <typename T, int V>
__device__ __forceinline__ void store(T* to, const float (&v)[V]) {
  *reinterpret_cast<Raw<T, V>*>(to) = pack<T, V>(v);
}

// V floats at 16-byte accesses, or the same number V times if there are none to read.
template <int V>
__device__ __forceinline__ void load_floats(const float* from, float otherwise, float (&v)[V]) {
  static_assert(V % 4 == 0);
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = otherwise;
  if (from == nullptr) return;
#pragma unroll
  for (int j = 0; j < V; j += 4) {
    const float4 four = *reinterpret_cast<const float4*>(from + j);
    v[j] = four.x;
    v[j + 1] = four.y;
    v[j + 2] = four.z;
    v[j + 3] = four.w;
  }
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
