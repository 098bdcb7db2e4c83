// What kernels share: a member's tensors, several elements per access, sums over a warp or a block, sizes of launches.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

constexpr int kWarp = 32;
constexpr int kMostWarps = 32;  // of a block
constexpr unsigned kAll = ~0u;  // lanes of a warp

// Members.

__device__ __forceinline__ bool skipped(const Members& members, unsigned member) {
  return members.active != nullptr && members.active[member] == 0;
}

__device__ __forceinline__ std::byte* base_of(const Members& members, unsigned member) {
  return members.base + static_cast<std::int64_t>(member) * members.stride;
}

// The address of a tensor of one member, or null.
template <typename T>
__device__ __forceinline__ T* at(std::byte* member, std::int64_t offset) {
  return offset < 0 ? nullptr : reinterpret_cast<T*>(member + offset);
}

// Several elements per access, as f32 in registers. T is float or __nv_bfloat16.

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

// One element.
template <typename T>
__device__ __forceinline__ float load_one(const T* from) {
  float v[1];
  load<T, 1>(from, v);
  return v[0];
}

template <typename T>
__device__ __forceinline__ void store_one(T* to, float value) {
  const float v[1] = {value};
  store<T, 1>(to, v);
}

// a / b of numbers that are not negative. Divisions of 64 bits cost several times those of 32.
__device__ __forceinline__ std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

// Sums and maxima. Every one has one order; all lanes of a warp, or all threads of a block, take part and get the
// result. `shared` holds kMostWarps numbers and may be used again at once.

template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance >>= 1) value += __shfl_xor_sync(kAll, value, distance);
  return value;
}

// NaN counts as missing.
__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance >>= 1) {
    value = fmaxf(value, __shfl_xor_sync(kAll, value, distance));
  }
  return value;
}

// Threads are counted along x, then y; their number is a multiple of kWarp.
__device__ __forceinline__ int thread_index() { return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); }

template <typename T>
__device__ __forceinline__ T block_sum(T value, T* shared) {
  const int warps = static_cast<int>(blockDim.x * blockDim.y) / kWarp, thread = thread_index();
  value = warp_sum(value);
  if (thread % kWarp == 0) shared[thread / kWarp] = value;
  __syncthreads();
  value = warp_sum(thread % kWarp < warps ? shared[thread % kWarp] : T{0});
  __syncthreads();
  return value;
}

__device__ __forceinline__ float block_max(float value, float* shared) {
  const int warps = static_cast<int>(blockDim.x * blockDim.y) / kWarp, thread = thread_index();
  value = warp_max(value);
  if (thread % kWarp == 0) shared[thread / kWarp] = value;
  __syncthreads();
  value = warp_max(thread % kWarp < warps ? shared[thread % kWarp] : shared[0]);
  __syncthreads();
  return value;
}

// Launches.

constexpr int kThreads = 256;  // of a block, where nothing speaks for another number

// kTeam threads of a block of kThreads along x that work on one thing: one, a warp, or all.
template <int kTeam>
struct Team {
  static_assert(kTeam == 1 || kTeam == kWarp || kTeam == kThreads);
  static constexpr int kPerBlock = kThreads / kTeam;

  __device__ __forceinline__ static int lane() { return static_cast<int>(threadIdx.x) % kTeam; }
  __device__ __forceinline__ static std::int64_t index() {
    return std::int64_t{blockIdx.x} * kPerBlock + threadIdx.x / kTeam;
  }
  template <typename T>
  __device__ __forceinline__ static T sum(T value, T* shared) {
    if constexpr (kTeam == 1) return value;
    if constexpr (kTeam == kWarp) return warp_sum(value);
    if constexpr (kTeam == kThreads) return block_sum(value, shared);
  }
  __device__ __forceinline__ static float max(float value, float* shared) {
    if constexpr (kTeam == 1) return value;
    if constexpr (kTeam == kWarp) return warp_max(value);
    if constexpr (kTeam == kThreads) return block_max(value, shared);
  }
};

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

// Blocks along x for so many items of which a block takes so many.
constexpr unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>(divide_up(items, per_block));
}

// Whether accesses of so many bytes are aligned in every one of these tensors; absent ones do not count. Base and
// stride of members are multiples of 256.
inline bool aligned(std::int64_t bytes, std::initializer_list<std::int64_t> offsets) {
  for (const std::int64_t offset : offsets) {
    if (offset > 0 && offset % bytes != 0) return false;
  }
  return true;
}

inline int launched() { return static_cast<int>(cudaPeekAtLastError()); }

}  // namespace norma::cuda
