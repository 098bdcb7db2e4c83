// Sum, sum of squares, largest magnitude and number of non-finite elements of one tensor or several: of pieces of fixed
// size, then of the pieces in order, in f64.
#include "norma/ops/statistics.h"

#include "ops/cuda/map.cuh"

namespace norma {
namespace {

constexpr std::int64_t kStatisticsPiece = 16384;  // elements of a block

struct StatisticsTensor {
  std::int64_t x = 0, out = 0, elements = 0;
  std::int64_t first = 0, pieces = 0;  // among those of all tensors
  bool narrow = false, wide_accesses = false;
};

struct StatisticsCall {
  cuda::Members members = {};
  std::int64_t parts = 0;  // f64 [pieces of all, 4]
  std::int32_t count = 0;
  StatisticsTensor of[kMostStatistics];
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

// Of elements begin to end, by all threads of a block.
template <typename T, int V>
__device__ __forceinline__ StatisticsSums statistics_of_piece(const T* x, std::int64_t begin, std::int64_t end) {
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
  return {sum, squares, largest, static_cast<double>(bad)};
}

template <typename T>
__device__ __forceinline__ StatisticsSums statistics_of_tensor(const StatisticsTensor& tensor, std::byte* member,
                                                               std::int64_t begin, std::int64_t end) {
  const T* const x = cuda::at<const T>(member, tensor.x);
  return tensor.wide_accesses ? statistics_of_piece<T, cuda::kWide<T>>(x, begin, end)
                              : statistics_of_piece<T, 1>(x, begin, end);
}

// A block to a piece. What has a single one is done with it.
__global__ void __launch_bounds__(cuda::kThreads) statistics_kernel(const __grid_constant__ StatisticsCall call) {
  __shared__ double shared[cuda::kMostWarps];
  __shared__ float shared_max[cuda::kMostWarps];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t piece = blockIdx.x;
  int index = 0;
  while (index + 1 < call.count && piece >= call.of[index + 1].first) ++index;
  const StatisticsTensor& tensor = call.of[index];
  const std::int64_t begin = (piece - tensor.first) * kStatisticsPiece, left = tensor.elements - begin;
  const std::int64_t end = begin + (left < kStatisticsPiece ? left : kStatisticsPiece);
  StatisticsSums sums = tensor.narrow ? statistics_of_tensor<__nv_bfloat16>(tensor, member, begin, end)
                                      : statistics_of_tensor<float>(tensor, member, begin, end);
  sums.write(
      shared, shared_max,
      tensor.pieces > 1 ? cuda::at<double>(member, call.parts) + 4 * piece : cuda::at<double>(member, tensor.out));
}

// A block to a tensor: its pieces together.
__global__ void __launch_bounds__(cuda::kThreads) add_statistics_kernel(const __grid_constant__ StatisticsCall call) {
  __shared__ double shared[cuda::kMostWarps];
  __shared__ float shared_max[cuda::kMostWarps];
  const StatisticsTensor& tensor = call.of[blockIdx.x];
  if (cuda::skipped(call.members, blockIdx.y) || tensor.pieces == 1) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const double* const parts = cuda::at<const double>(member, call.parts) + 4 * tensor.first;
  StatisticsSums sums;
  for (std::int64_t i = threadIdx.x; i < tensor.pieces; i += cuda::kThreads) {
    const double* const part = parts + 4 * i;
    sums.sum += part[0];
    sums.squares += part[1];
    sums.largest = fmax(sums.largest, part[2]);
    sums.bad += part[3];
  }
  sums.write(shared, shared_max, cuda::at<double>(member, tensor.out));
}

cuda::Program statistics_program(Types in) {
  StatisticsCall shape{.count = static_cast<std::int32_t>(in.size())};
  std::int64_t pieces = 0;
  for (std::size_t k = 0; k < in.size(); ++k) {
    const std::int64_t elements = in[k].shape.elements(), own = cuda::divide_up(elements, kStatisticsPiece);
    shape.of[k] = {.elements = elements, .first = pieces, .pieces = own, .narrow = in[k].dtype == DType::bf16};
    pieces += own;
  }
  const auto launch = [shape, pieces](const cuda::Call& call) {
    StatisticsCall told = shape;
    told.members = call.members;
    told.parts = call.scratch;
    for (int k = 0; k < told.count; ++k) {
      StatisticsTensor& tensor = told.of[k];
      tensor.x = call.in(k), tensor.out = call.out(k);
      tensor.wide_accesses = tensor.x % 16 == 0 && tensor.elements % (tensor.narrow ? 8 : 4) == 0;
    }
    const auto members = static_cast<unsigned>(call.members.count);
    statistics_kernel<<<dim3(static_cast<unsigned>(pieces), members), cuda::kThreads, 0, call.stream>>>(told);
    if (const int error = cuda::launched(); error != 0 || pieces == told.count) return error;
    add_statistics_kernel<<<dim3(static_cast<unsigned>(told.count), members), cuda::kThreads, 0, call.stream>>>(told);
    return cuda::launched();
  };
  return {.launch = launch, .scratch_bytes = pieces * 4 * static_cast<std::int64_t>(sizeof(double))};
}

}  // namespace

cuda::Program cuda_kernel(const StatisticsOp&, Types in, Types) { return statistics_program(in); }
cuda::Program cuda_kernel(const StatisticsOfSeveral&, Types in, Types) { return statistics_program(in); }

}  // namespace norma
