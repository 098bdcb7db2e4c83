// Sum, sum of squares, largest magnitude and number of non-finite elements: of pieces of fixed size, then of the pieces
// in order, in f64.
#include "norma/ops/statistics.h"

#include "device/cuda/device.cuh"

namespace norma {
namespace {

constexpr std::int64_t kStatisticsPiece = 16384;  // elements of a block

struct StatisticsCall {
  cuda::Members members = {};
  std::int64_t x = 0, out = 0;
  std::int64_t elements = 0, pieces = 0;
};

struct StatisticsSums {
  double sum = 0, squares = 0, largest = 0, bad = 0;

  // Of the whole block, in thread 0; written as {sum, squares, largest, bad}.
  __device__ __forceinline__ void write(double* shared, float* shared_max, double* out) {
    sum = cuda::block_sum(sum, shared);
    squares = cuda::block_sum(squares, shared);
    bad = cuda::block_sum(bad, shared);
    largest = static_cast<double>(cuda::block_max(static_cast<float>(largest), shared_max));
    if (threadIdx.x != 0) return;
    out[0] = sum;
    out[1] = squares;
    out[2] = largest;
    out[3] = bad;
  }
};

// out: [pieces, 4]
template <typename T, int V>
__global__ void __launch_bounds__(cuda::kThreads) statistics_kernel(const __grid_constant__ StatisticsCall call) {
  __shared__ double shared[cuda::kMostWarps];
  __shared__ float shared_max[cuda::kMostWarps];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const T* const x = cuda::at<const T>(member, call.x);
  const std::int64_t begin = blockIdx.x * kStatisticsPiece, left = call.elements - begin;
  const std::int64_t end = begin + (left < kStatisticsPiece ? left : kStatisticsPiece);
  float sum = 0.0f, squares = 0.0f, largest = 0.0f;
  int bad = 0;
#pragma unroll 4
  for (std::int64_t i = begin + threadIdx.x * V; i < end; i += cuda::kThreads * V) {
    float v[V];
    cuda::load<T, V>(x + i, v);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      sum += v[j];
      squares = fmaf(v[j], v[j], squares);
      if (isfinite(v[j])) {
        largest = fmaxf(largest, fabsf(v[j]));
      } else {
        ++bad;
      }
    }
  }
  StatisticsSums sums{sum, squares, largest, static_cast<double>(bad)};
  sums.write(shared, shared_max, cuda::at<double>(member, call.out) + 4 * std::int64_t{blockIdx.x});
}

// x: what the other kernel wrote; one block
__global__ void __launch_bounds__(cuda::kThreads) add_statistics_kernel(const __grid_constant__ StatisticsCall call) {
  __shared__ double shared[cuda::kMostWarps];
  __shared__ float shared_max[cuda::kMostWarps];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const double* const parts = cuda::at<const double>(member, call.x);
  StatisticsSums sums;
  for (std::int64_t i = threadIdx.x; i < call.pieces; i += cuda::kThreads) {
    const double* const part = parts + 4 * i;
    sums.sum += part[0];
    sums.squares += part[1];
    sums.largest = fmax(sums.largest, part[2]);
    sums.bad += part[3];
  }
  sums.write(shared, shared_max, cuda::at<double>(member, call.out));
}

template <typename T>
cuda::Program statistics_program(std::int64_t elements) {
  const std::int64_t pieces = cuda::divide_up(elements, kStatisticsPiece);
  const auto launch = [elements, pieces](const cuda::Call& call) {
    StatisticsCall told{call.members, call.in(0), pieces > 1 ? call.scratch : call.out(0), elements, pieces};
    const auto members = static_cast<unsigned>(call.members.count);
    const dim3 grid(static_cast<unsigned>(pieces), members);
    if (told.x % 16 == 0 && elements % 4 == 0) {
      statistics_kernel<T, 4><<<grid, cuda::kThreads, 0, call.stream>>>(told);
    } else {
      statistics_kernel<T, 1><<<grid, cuda::kThreads, 0, call.stream>>>(told);
    }
    if (const int error = cuda::launched(); error != 0 || pieces == 1) return error;
    told.x = call.scratch;
    told.out = call.out(0);
    add_statistics_kernel<<<dim3(1, members), cuda::kThreads, 0, call.stream>>>(told);
    return cuda::launched();
  };
  return {.launch = launch, .scratch_bytes = pieces > 1 ? pieces * 4 * static_cast<std::int64_t>(sizeof(double)) : 0};
}

}  // namespace

cuda::Program cuda_kernel(const StatisticsOp&, Types in, Types) {
  const std::int64_t elements = in[0].shape.elements();
  return in[0].dtype == DType::bf16 ? statistics_program<__nv_bfloat16>(elements) : statistics_program<float>(elements);
}

}  // namespace norma
