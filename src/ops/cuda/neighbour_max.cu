// The largest of neighbours, a warp to a node and 32 of its channels, and rows by number, which its derivative is made
// of. What several picks add to one place is added in the order of picks, those of each of kScatterWarps parts first:
// no atomics, one order.
#include "norma/ops/neighbours.h"
#include "ops/cuda/edges.cuh"

namespace norma {
namespace {

struct NeighbourMaxCall {
  cuda::Members members = {};
  std::int64_t x = 0, edges = 0, y = 0, picks = cuda::kAbsent;
  std::int64_t nodes = 0, width = 0, count = 0;
};

template <class T>
__global__ void __launch_bounds__(cuda::kThreads) neighbour_max_kernel(const __grid_constant__ NeighbourMaxCall call) {
  const std::int64_t node = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (cuda::skipped(call.members, blockIdx.z) || node >= call.nodes) return;  // a whole warp
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const std::int32_t* const from = cuda::at<const std::int32_t>(member, call.edges);
  const std::int64_t column = std::int64_t{blockIdx.y} * cuda::kWarp + threadIdx.x;
  const bool has = column < call.width;
  const T* const x = cuda::at<const T>(member, call.x) + (has ? column : 0);
  float best = 0.0f;
  auto pick = static_cast<std::int32_t>(call.nodes);
  const std::int64_t begin = cuda::first_of(from, call.count, node);
  for (std::int64_t edge = begin; edge < call.count && from[edge] == node; ++edge) {
    const std::int32_t neighbour = from[call.count + edge];
    if (neighbour < 0 || neighbour >= call.nodes) {
      best = nanf("");
      break;
    }
    cuda::keep_larger(cuda::load_one(x + neighbour * call.width), neighbour, edge == begin, best, pick);
  }
  if (!has) return;
  cuda::store_one(cuda::at<T>(member, call.y) + node * call.width + column, best);
  if (call.picks >= 0) cuda::at<std::int32_t>(member, call.picks)[node * call.width + column] = pick;
}

struct PickedCall {
  cuda::Members members = {};
  std::int64_t from = 0, picks = 0, to = 0;
  std::int64_t rows = 0, picked = 0, width = 0;
};

template <class T>
__global__ void __launch_bounds__(cuda::kThreads) gather_picked_kernel(const __grid_constant__ PickedCall call) {
  const std::int64_t i = std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x;
  if (cuda::skipped(call.members, blockIdx.y) || i >= call.picked * call.width) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t row = cuda::at<const std::int32_t>(member, call.picks)[i];
  const std::int64_t column = i - cuda::quotient(i, call.width) * call.width;
  const bool there = row >= 0 && row < call.rows;
  const float value = there ? cuda::load_one(cuda::at<const T>(member, call.from) + row * call.width + column) : 0.0f;
  cuda::store_one(cuda::at<T>(member, call.to) + i, value);
}

constexpr int kScatterWarps = 8, kScatterRows = 32;

// A block has kScatterRows rows of 32 columns. Each of its warps walks a part of all picks, a lane to a column.
template <class T>
__global__ void __launch_bounds__(cuda::kWarp* kScatterWarps)
    scatter_picked_kernel(const __grid_constant__ PickedCall call) {
  __shared__ float sums[kScatterWarps][kScatterRows][cuda::kWarp];
  if (cuda::skipped(call.members, blockIdx.z)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const int lane = static_cast<int>(threadIdx.x), warp = static_cast<int>(threadIdx.y);
  const std::int64_t first = std::int64_t{blockIdx.x} * kScatterRows;
  const std::int64_t column = std::int64_t{blockIdx.y} * cuda::kWarp + lane;
  for (int row = 0; row < kScatterRows; ++row) sums[warp][row][lane] = 0.0f;
  const std::int64_t part = (call.picked + kScatterWarps - 1) / kScatterWarps;
  const std::int64_t begin = warp * part, end = column < call.width ? min(begin + part, call.picked) : 0;
  const std::int32_t* const picks = cuda::at<const std::int32_t>(member, call.picks) + column;
  const T* const dy = cuda::at<const T>(member, call.from) + column;
#pragma unroll 8
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t row = picks[i * call.width] - first;
    if (row >= 0 && row < kScatterRows && first + row < call.rows)
      sums[warp][row][lane] += cuda::load_one(dy + i * call.width);
  }
  __syncthreads();
  if (column >= call.width) return;
  for (int row = warp; row < kScatterRows && first + row < call.rows; row += kScatterWarps) {
    float all = 0.0f;
#pragma unroll
    for (int other = 0; other < kScatterWarps; ++other) all += sums[other][row][lane];
    cuda::store_one(cuda::at<T>(member, call.to) + (first + row) * call.width + column, all);
  }
}

template <class T>
int run_neighbour_max(const NeighbourMaxCall& told, cuda::Stream stream) {
  const dim3 block(cuda::kWarp, cuda::kThreads / cuda::kWarp);
  const dim3 grid(cuda::blocks_for(told.nodes, block.y), cuda::blocks_for(told.width, cuda::kWarp),
                  static_cast<unsigned>(told.members.count));
  neighbour_max_kernel<T><<<grid, block, 0, stream>>>(told);
  return cuda::launched();
}

template <class T>
int run_picked(const PickedCall& told, bool gather, cuda::Stream stream) {
  const auto members = static_cast<unsigned>(told.members.count);
  if (gather) {
    const dim3 grid(cuda::blocks_for(told.picked * told.width, cuda::kThreads), members);
    gather_picked_kernel<T><<<grid, cuda::kThreads, 0, stream>>>(told);
  } else {
    const dim3 grid(cuda::blocks_for(told.rows, kScatterRows), cuda::blocks_for(told.width, cuda::kWarp), members);
    scatter_picked_kernel<T><<<grid, dim3(cuda::kWarp, kScatterWarps), 0, stream>>>(told);
  }
  return cuda::launched();
}

}  // namespace

cuda::Program cuda_kernel(const NeighbourMax&, Types in, Types) {
  const std::int64_t nodes = in[0].shape[0];
  const NeighbourMaxCall shape{.nodes = nodes, .width = in[0].shape.elements() / nodes, .count = in[1].shape[1]};
  return {.launch = [shape, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
    NeighbourMaxCall told = shape;
    told.members = call.members;
    told.x = call.in(0), told.edges = call.in(1);
    told.y = call.out(0), told.picks = call.out(1);
    return narrow ? run_neighbour_max<__nv_bfloat16>(told, call.stream) : run_neighbour_max<float>(told, call.stream);
  }};
}

cuda::Program cuda_kernel(const PickedRows& op, Types in, Types) {
  const std::int64_t picked = in[1].shape[0];
  const PickedCall shape{.rows = op.rows(), .picked = picked, .width = in[1].shape.elements() / picked};
  const bool gather = op.way() == PickedRows::Way::gather;
  return {.launch = [shape, gather, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
    PickedCall told = shape;
    told.members = call.members;
    told.from = call.in(0), told.picks = call.in(1), told.to = call.out(0);
    return narrow ? run_picked<__nv_bfloat16>(told, gather, call.stream) : run_picked<float>(told, gather, call.stream);
  }};
}

}  // namespace norma
