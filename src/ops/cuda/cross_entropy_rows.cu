// loss = (1-s) (lse - z_target) + s (lse - mean(z)) per row; dz = scale (softmax(z) - (1-s) onehot - s/n). A thread
// takes a row of a few classes if there are many, a warp a short row, a block a long one; a row is read once, its sum
// corrected as larger logits turn up. A long row whose loss and gradient are both wanted waits in shared memory for its
// log-sum-exp.
#include "ops/cuda/cross_entropy_rows.h"

#include <cmath>

#include "device/cuda/device.cuh"
#include "ops/cuda/cross_entropy_sums.cuh"

namespace norma::cuda {
namespace {

constexpr std::int64_t kShortRow = 1024;
constexpr std::int64_t kTinyRow = 16, kManyRows = 32768;  // classes of a row, and rows of all members
constexpr int kCountThreads = 1024;

// kWarps warps share a row: 1, or all of the block; 0: each thread has a row of its own.
template <int kWarps>
struct RowThreads {
  static constexpr int kThreadsOfRow = kWarps == 0 ? 1 : kWarps * kWarp;
  __device__ static __forceinline__ std::int64_t row() {
    return std::int64_t{blockIdx.x} * (kThreads / kThreadsOfRow) + threadIdx.x / kThreadsOfRow;
  }
  __device__ static __forceinline__ int index() { return static_cast<int>(threadIdx.x) % kThreadsOfRow; }
};

template <typename T, int kWarps>
__device__ __forceinline__ void merge_row(RowSums<T>& sums) {
  if constexpr (kWarps > 0) sums.merge_warp();
  if constexpr (kWarps > 1) {
    __shared__ float parts[kWarps][3];
    if (threadIdx.x % kWarp == 0) {
      parts[threadIdx.x / kWarp][0] = sums.largest;
      parts[threadIdx.x / kWarp][1] = sums.exponentials;
      parts[threadIdx.x / kWarp][2] = sums.total;
    }
    __syncthreads();
    sums = RowSums<T>();
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) sums.merge({parts[warp][0], parts[warp][1], parts[warp][2]});
  }
}

// Of one row, by the threads that share it.
template <typename T, int V, int kWarps>
struct RowOfLogits {
  using Threads = RowThreads<kWarps>;
  const CrossEntropyRows& call;
  std::byte* const member;
  const std::int64_t row;
  const T* const z;
  const std::int32_t target;
  const float smoothing;

  __device__ __forceinline__ RowOfLogits(const CrossEntropyRows& told, std::byte* member_base, std::int64_t row_index)
      : call(told),
        member(member_base),
        row(row_index),
        z(at<const T>(member, call.logits) + row * call.classes),
        target(at<const std::int32_t>(member, call.targets)[row]),
        smoothing(*at<const float>(member, call.smoothing)) {}

  // Writes the loss and the log-sum-exp. Thread 0 of the row gets the latter; others may differ in the last bit.
  __device__ __forceinline__ float write_loss(std::int64_t losses) const {
    RowSums<T> sums;
    for (std::int64_t i = std::int64_t{Threads::index()} * V; i < call.classes; i += Threads::kThreadsOfRow * V) {
      float v[V];
      load<T, V>(z + i, v);
      sums.add(v);
    }
    merge_row<T, kWarps>(sums);
    const float lse = sums.lse();
    if (Threads::index() != 0) return lse;
    at<float>(member, call.lse)[row] = lse;
    float loss = target < 0 || target >= call.classes ? NAN : lse - load_one(z + target);
    if (smoothing != 0.0f) {
      loss = (1.0f - smoothing) * loss + smoothing * (lse - sums.total / static_cast<float>(call.classes));
    }
    at<float>(member, losses)[row] = target == call.ignore ? 0.0f : loss;
    return lse;
  }

  // dz has the logits' layout and may be them: neither pointer promises anything about the other.
  __device__ __forceinline__ void write_gradient(float lse, std::int64_t scale_at, std::int64_t dlogits) const {
    T* const dz = at<T>(member, dlogits) + row * call.classes;
    const bool ignored = target == call.ignore, known = target >= 0 && target < call.classes;
    const float scale = known ? *at<const float>(member, scale_at) : NAN;
    const float uniform = smoothing / static_cast<float>(call.classes), wanted = scale * (1.0f - smoothing);
    for (std::int64_t i = std::int64_t{Threads::index()} * V; i < call.classes; i += Threads::kThreadsOfRow * V) {
      float v[V];
      load<T, V>(z + i, v);
#pragma unroll
      for (int j = 0; j < V; ++j) {
        v[j] = scale * (exponential<T>(v[j] - lse) - uniform);
        if (i + j == target) v[j] -= wanted;
        if (ignored) v[j] = 0.0f;
      }
      store<T, V>(dz + i, v);
    }
  }
};

enum class RowWork { loss, gradient, both };

template <RowWork kWork, typename T, int V, int kWarps>
__global__ void __launch_bounds__(kThreads) row_kernel(const __grid_constant__ CrossEntropyRows call,
                                                       std::int64_t losses, std::int64_t scale, std::int64_t dlogits) {
  if (skipped(call.members, blockIdx.y)) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const std::int64_t row = RowThreads<kWarps>::row();
  if (row >= call.rows) return;  // all threads of a row, or no one
  const RowOfLogits<T, V, kWarps> logits(call, member, row);
  if constexpr (kWork == RowWork::gradient) {
    logits.write_gradient(at<const float>(member, call.lse)[row], scale, dlogits);
  } else {
    float lse = logits.write_loss(losses);
    if constexpr (kWork == RowWork::loss) return;
    if constexpr (kWarps == 1) {
      lse = __shfl_sync(kAll, lse, 0);
    } else if constexpr (kWarps > 1) {
      // The row's own log-sum-exp, and the target's logit has been read.
      __shared__ float first;
      if (threadIdx.x == 0) first = lse;
      __syncthreads();
      lse = first;
    }
    if constexpr (kWarps > 0) __syncwarp();
    logits.write_gradient(lse, scale, dlogits);
  }
}

__device__ __forceinline__ double counted(const CountedRows& call, std::byte* member, double* shared) {
  const std::int32_t* const targets = at<const std::int32_t>(member, call.targets);
  double count = 0;
  for (std::int64_t row = threadIdx.x; row < call.rows; row += kCountThreads) {
    count += targets[row] == call.ignore ? 0.0 : 1.0;
  }
  return block_sum(count, shared);
}

__global__ void __launch_bounds__(kCountThreads)
    mean_loss_kernel(const __grid_constant__ CountedRows call, std::int64_t losses, std::int64_t loss) {
  __shared__ double shared[kMostWarps];
  if (skipped(call.members, blockIdx.x)) return;
  std::byte* const member = base_of(call.members, blockIdx.x);
  const double count = counted(call, member, shared);
  double sum = 0;
  for (std::int64_t row = threadIdx.x; row < call.rows; row += kCountThreads) {
    sum += static_cast<double>(at<const float>(member, losses)[row]);
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *at<float>(member, loss) = static_cast<float>(sum / count);
}

__global__ void __launch_bounds__(kCountThreads)
    gradient_scale_kernel(const __grid_constant__ CountedRows call, std::int64_t dloss, std::int64_t scale) {
  __shared__ double shared[kMostWarps];
  if (skipped(call.members, blockIdx.x)) return;
  std::byte* const member = base_of(call.members, blockIdx.x);
  const double count = counted(call, member, shared);
  if (threadIdx.x == 0) *at<float>(member, scale) = *at<const float>(member, dloss) / static_cast<float>(count);
}

// launch<T, V, warps>(grid): elements of type T per access, and warps per row.
template <typename T, class Launch>
int launch_rows_of(const CrossEntropyRows& call, bool aligned, const Launch& launch) {
  const bool whole_block = call.classes > kShortRow;
  const bool alone = call.classes <= kTinyRow && call.rows * call.members.count >= kManyRows;
  const int rows_of_block = alone ? kThreads : whole_block ? 1 : kThreads / kWarp;
  const dim3 grid(blocks_for(call.rows, rows_of_block), static_cast<unsigned>(call.members.count));
  if (alone) {
    launch.template operator()<T, 1, 0>(grid);
    return launched();
  }
  constexpr int kBlock = kThreads / kWarp, kV = 16 / static_cast<int>(sizeof(T));
  if (aligned && call.classes % kV == 0) {
    whole_block ? launch.template operator()<T, kV, kBlock>(grid) : launch.template operator()<T, kV, 1>(grid);
  } else {
    whole_block ? launch.template operator()<T, 1, kBlock>(grid) : launch.template operator()<T, 1, 1>(grid);
  }
  return launched();
}

template <class Launch>
int launch_rows(const CrossEntropyRows& call, bool aligned, const Launch& launch) {
  return call.narrow ? launch_rows_of<__nv_bfloat16>(call, aligned, launch)
                     : launch_rows_of<float>(call, aligned, launch);
}

}  // namespace

int row_losses(const CrossEntropyRows& call, std::int64_t losses, Stream stream) {
  return launch_rows(call, aligned(16, {call.logits}), [&]<typename T, int V, int kWarps>(dim3 grid) {
    row_kernel<RowWork::loss, T, V, kWarps><<<grid, kThreads, 0, stream>>>(call, losses, kAbsent, kAbsent);
  });
}

int row_gradients(const CrossEntropyRows& call, std::int64_t scale, std::int64_t dlogits, Stream stream) {
  return launch_rows(call, aligned(16, {call.logits, dlogits}), [&]<typename T, int V, int kWarps>(dim3 grid) {
    row_kernel<RowWork::gradient, T, V, kWarps><<<grid, kThreads, 0, stream>>>(call, kAbsent, scale, dlogits);
  });
}

int row_losses_and_gradients(const CrossEntropyRows& call, std::int64_t losses, std::int64_t scale, Stream stream) {
  if (holds_rows(call)) return held_losses_and_gradients(call, losses, scale, stream);
  return launch_rows(call, aligned(16, {call.logits}), [&]<typename T, int V, int kWarps>(dim3 grid) {
    row_kernel<RowWork::both, T, V, kWarps><<<grid, kThreads, 0, stream>>>(call, losses, scale, call.logits);
  });
}

int mean_loss(const CountedRows& call, std::int64_t losses, std::int64_t loss, Stream stream) {
  mean_loss_kernel<<<static_cast<unsigned>(call.members.count), kCountThreads, 0, stream>>>(call, losses, loss);
  return launched();
}

int gradient_scale(const CountedRows& call, std::int64_t dloss, std::int64_t scale, Stream stream) {
  gradient_scale_kernel<<<static_cast<unsigned>(call.members.count), kCountThreads, 0, stream>>>(call, dloss, scale);
  return launched();
}

}  // namespace norma::cuda
