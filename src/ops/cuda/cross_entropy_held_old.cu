// The kernel that cross_entropy_held.cu replaces, while the two are compared.
#include "ops/cuda/cross_entropy_rows.h"
#include "ops/cuda/cross_entropy_sums.cuh"

namespace norma::cuda {
namespace {

constexpr int kHeldThreads = 512;

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

// The sums over the block, in thread 0.
template <typename T>
__device__ __forceinline__ void merge_held(RowSums<T>& sums) {
  constexpr int kWarps = kHeldThreads / kWarp;
  __shared__ float parts[kWarps][3];
  const int thread = static_cast<int>(threadIdx.x);
  sums.merge_warp();
  if (thread % kWarp == 0) {
    parts[thread / kWarp][0] = sums.largest;
    parts[thread / kWarp][1] = sums.exponentials;
    parts[thread / kWarp][2] = sums.total;
  }
  __syncthreads();
  if (thread >= kWarp) return;
  sums = thread < kWarps ? RowSums<T>{parts[thread][0], parts[thread][1], parts[thread][2]} : RowSums<T>();
  sums.merge_warp();
}

// Loss, log-sum-exp and gradient of one row of whole 16 bytes, read once; the gradient goes where the logits were.
template <typename T>
__global__ void __launch_bounds__(kHeldThreads, 2)
    old_held_row_kernel(const __grid_constant__ CrossEntropyRows call, std::int64_t losses, std::int64_t scale_at) {
  constexpr int V = 16 / static_cast<int>(sizeof(T)), kHop = kHeldThreads * V;
  extern __shared__ __align__(16) std::byte held[];
  __shared__ float shared_lse;
  if (skipped(call.members, blockIdx.y)) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const std::int64_t row = blockIdx.x;
  const int classes = static_cast<int>(call.classes), first = static_cast<int>(threadIdx.x) * V;
  T* const z = at<T>(member, call.logits) + row * classes;
  T* const mine = reinterpret_cast<T*>(held);
  const int half = (classes / 2 + kHop - 1) / kHop * kHop;  // the sums begin while the second half is on its way
  for (int i = first; i < half && i < classes; i += kHop) begin_copy(mine + i, z + i);
  end_copies();
  for (int i = half + first; i < classes; i += kHop) begin_copy(mine + i, z + i);
  end_copies();
  const std::int32_t target = at<const std::int32_t>(member, call.targets)[row];
  const float smoothing = *at<const float>(member, call.smoothing);
  const bool ignored = target == call.ignore, known = target >= 0 && target < classes;
  const float scale = known ? *at<const float>(member, scale_at) : NAN;
  RowSums<T> sums;
  const auto add = [&](int begin, int end) {
    for (int i = begin + first; i < end; i += kHop) {
      float v[V];
      load<T, V>(mine + i, v);
      sums.add(v);
    }
  };
  await_copies<1>();
  add(0, half < classes ? half : classes);
  await_copies<0>();
  add(half, classes);
  merge_held(sums);
  if (threadIdx.x == 0) {
    const float lse = sums.lse();
    shared_lse = lse;
    at<float>(member, call.lse)[row] = lse;
    float loss = known ? lse - load_one(mine + target) : NAN;
    if (smoothing != 0.0f) {
      loss = (1.0f - smoothing) * loss + smoothing * (lse - sums.total / static_cast<float>(classes));
    }
    at<float>(member, losses)[row] = ignored ? 0.0f : loss;
  }
  __syncthreads();
  const float lse = shared_lse, uniform = smoothing / static_cast<float>(classes), wanted = scale * (1.0f - smoothing);
  for (int i = first; i < classes; i += kHop) {
    float v[V];
    load<T, V>(mine + i, v);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      v[j] = scale * (exponential<T>(v[j] - lse) - uniform);
      if (i + j == target) v[j] -= wanted;
      if (ignored) v[j] = 0.0f;
    }
    store<T, V>(z + i, v);
  }
}

template <typename T>
int launch_old_held_rows(const CrossEntropyRows& call, std::int64_t losses, std::int64_t scale, Stream stream) {
  constexpr auto kKernel = old_held_row_kernel<T>;
  const auto bytes = static_cast<int>(call.classes * static_cast<std::int64_t>(sizeof(T)));
  const cudaError_t raised = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (raised != cudaSuccess) return static_cast<int>(raised);
  const dim3 grid(static_cast<unsigned>(call.rows), static_cast<unsigned>(call.members.count));
  kKernel<<<grid, kHeldThreads, static_cast<unsigned>(bytes), stream>>>(call, losses, scale);
  return launched();
}

}  // namespace

int old_held_losses_and_gradients(const CrossEntropyRows& call, std::int64_t losses, std::int64_t scale,
                                  Stream stream) {
  return call.narrow ? launch_old_held_rows<__nv_bfloat16>(call, losses, scale, stream)
                     : launch_old_held_rows<float>(call, losses, scale, stream);
}

}  // namespace norma::cuda
