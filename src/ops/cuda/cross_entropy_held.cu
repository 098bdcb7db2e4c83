// Loss and gradient of long rows of logits in one launch: a row waits in shared memory for its log-sum-exp, so memory
// is read once and written once. Without it the second reading misses the cache: rows of all blocks are more than it
// holds.
#include <cmath>

#include "device/cuda/device.cuh"
#include "ops/cuda/cross_entropy_rows.h"

namespace norma::cuda {
namespace {

constexpr int kHeldThreads = 512;
// Of a row: two blocks fit a multiprocessor of Hopper, and one reads while the other computes.
constexpr std::int64_t kHeldBytes = std::int64_t{110} << 10;

// Every thread reads what it has copied itself: no barrier between the two.
__device__ __forceinline__ void begin_copy(void* to_shared, const void* from) {
  const std::uint32_t to = static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kNewer>
__device__ __forceinline__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewer) : "memory");
}

// The largest logit that a thread has met. NaN counts as missing.
template <typename T>
class Largest;
template <>
class Largest<float> {
 public:
  __device__ __forceinline__ void add(uint4 raw) {
    float z[4];
    unpack<float, 4>(raw, z);
    top_ = fmaxf(top_, fmaxf(fmaxf(z[0], z[1]), fmaxf(z[2], z[3])));
  }
  __device__ __forceinline__ float value() const { return top_; }

 private:
  float top_ = -INFINITY;
};
template <>
class Largest<__nv_bfloat16> {  // in pairs
 public:
  __device__ __forceinline__ void add(uint4 raw) {
    top_ = __hmax2(top_, __hmax2(__hmax2(pair(raw.x), pair(raw.y)), __hmax2(pair(raw.z), pair(raw.w))));
  }
  __device__ __forceinline__ float value() const { return fmaxf(__low2float(top_), __high2float(top_)); }

 private:
  __device__ __forceinline__ static __nv_bfloat162 pair(unsigned word) {
    return *reinterpret_cast<const __nv_bfloat162*>(&word);
  }
  __nv_bfloat162 top_ = __float2bfloat162_rn(-INFINITY);
};

// exp(z - top). Logits of 8 bits do not need all 24 of the result, and rows of many classes are bound by instructions:
// there it is one multiplication and one special instruction.
template <typename T>
class Exponential {
 public:
  // exp(-infinity - -infinity) would be NaN where nothing but -infinity has been met.
  __device__ __forceinline__ explicit Exponential(float top)
      : shift_(top == -INFINITY ? 0.0f
               : kExact         ? top
                                : top * kLog2E) {}
  __device__ __forceinline__ float operator()(float z) const {
    if constexpr (kExact) {
      return expf(z - shift_);
    } else {
      float power;
      asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(fmaf(z, kLog2E, -shift_)));
      return power;
    }
  }

 private:
  static constexpr bool kExact = sizeof(T) == 4;
  static constexpr float kLog2E = 1.4426950408889634f;
  float shift_;
};

// Loss, log-sum-exp and gradient of one row of whole 16 bytes, read once; the gradient goes where the logits were.
template <typename T>
__global__ void __launch_bounds__(kHeldThreads, 2)
    held_row_kernel(const __grid_constant__ CrossEntropyRows call, std::int64_t losses, std::int64_t scale_at) {
  constexpr int V = 16 / static_cast<int>(sizeof(T)), kHop = kHeldThreads * V;
  extern __shared__ __align__(16) std::byte held[];
  __shared__ float shared[kMostWarps];
  if (skipped(call.members, blockIdx.y)) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const std::int64_t row = blockIdx.x;
  const int classes = static_cast<int>(call.classes), first = static_cast<int>(threadIdx.x) * V;
  T* const z = at<T>(member, call.logits) + row * classes;
  T* const mine = reinterpret_cast<T*>(held);
  const int half = (classes / 2 + kHop - 1) / kHop * kHop;  // the first is looked at while the second is on its way
  for (int i = first; i < half && i < classes; i += kHop) begin_copy(mine + i, z + i);
  end_copies();
  for (int i = half + first; i < classes; i += kHop) begin_copy(mine + i, z + i);
  end_copies();
  const std::int32_t target = at<const std::int32_t>(member, call.targets)[row];
  const float smoothing = *at<const float>(member, call.smoothing);
  const bool ignored = target == call.ignore, known = target >= 0 && target < classes;
  const float scale = known ? *at<const float>(member, scale_at) : NAN;

  Largest<T> largest;
  await_copies<1>();
  for (int i = first; i < half && i < classes; i += kHop) largest.add(load_raw<T, V>(mine + i));
  await_copies<0>();
  for (int i = half + first; i < classes; i += kHop) largest.add(load_raw<T, V>(mine + i));
  const float top = block_max(largest.value(), shared);

  const Exponential<T> exponential(top);
  float sums[V] = {}, total = 0.0f;
#pragma unroll 2
  for (int i = first; i < classes; i += kHop) {
    float v[V];
    load<T, V>(mine + i, v);
#pragma unroll
    for (int j = 0; j < V; ++j) sums[j] += exponential(v[j]);
  }
  float sum = sums[0];
#pragma unroll
  for (int j = 1; j < V; ++j) sum += sums[j];
  sum = block_sum(sum, shared);
  if (smoothing != 0.0f) {
    for (int i = first; i < classes; i += kHop) {
      float v[V];
      load<T, V>(mine + i, v);
#pragma unroll
      for (int j = 0; j < V; ++j) total += v[j];
    }
    total = block_sum(total, shared);
  }
  if (threadIdx.x == 0) {
    const float lse = top == -INFINITY ? NAN : top + logf(sum);
    at<float>(member, call.lse)[row] = lse;
    float loss = known ? lse - load_one(mine + target) : NAN;
    if (smoothing != 0.0f) {
      loss = (1.0f - smoothing) * loss + smoothing * (lse - total / static_cast<float>(classes));
    }
    at<float>(member, losses)[row] = ignored ? 0.0f : loss;
  }
  if (ignored) {
    const float none[V] = {};
    for (int i = first; i < classes; i += kHop) store<T, V>(z + i, none);
    return;
  }
  // If all logits are -infinity, 0 * infinity.
  const float factor = scale / sum, uniform = scale * smoothing / static_cast<float>(classes);
  const float wanted = scale * (1.0f - smoothing);
#pragma unroll 2
  for (int i = first; i < classes; i += kHop) {
    float v[V];
    load<T, V>(mine + i, v);
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] = fmaf(exponential(v[j]), factor, -uniform);
    if (i <= target && target < i + V) {
#pragma unroll
      for (int j = 0; j < V; ++j) {
        if (i + j == target) v[j] -= wanted;
      }
    }
    store<T, V>(z + i, v);
  }
}

template <typename T>
int launch_held_rows(const CrossEntropyRows& call, std::int64_t losses, std::int64_t scale, Stream stream) {
  constexpr auto kKernel = held_row_kernel<T>;
  const auto bytes = static_cast<int>(call.classes * static_cast<std::int64_t>(sizeof(T)));
  const cudaError_t raised = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (raised != cudaSuccess) return static_cast<int>(raised);
  const dim3 grid(static_cast<unsigned>(call.rows), static_cast<unsigned>(call.members.count));
  kKernel<<<grid, kHeldThreads, static_cast<unsigned>(bytes), stream>>>(call, losses, scale);
  return launched();
}

}  // namespace

bool holds_rows(const CrossEntropyRows& call) {
  const std::int64_t bytes = call.classes * (call.narrow ? 2 : 4);
  return bytes >= kHeldThreads * 16 && bytes <= kHeldBytes && bytes % 16 == 0 && aligned(16, {call.logits});
}

int held_losses_and_gradients(const CrossEntropyRows& call, std::int64_t losses, std::int64_t scale, Stream stream) {
  return call.narrow ? launch_held_rows<__nv_bfloat16>(call, losses, scale, stream)
                     : launch_held_rows<float>(call, losses, scale, stream);
}

}  // namespace norma::cuda
