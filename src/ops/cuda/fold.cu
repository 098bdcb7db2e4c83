#include "ops/cuda/fold.h"

#include "device/cuda/device.cuh"

namespace norma::cuda {
namespace {

constexpr int kFoldRows = 8;

// A block takes kWarp columns of one batch, each of its warps every kFoldRows-th line.
__global__ void __launch_bounds__(kWarp* kFoldRows)
    fold_kernel(const __grid_constant__ FoldCall call, const std::int64_t tiles) {
  __shared__ float shared[kFoldRows][kWarp];
  if (skipped(call.members, blockIdx.y)) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const std::int64_t batch = quotient(blockIdx.x, tiles);
  const std::int64_t column = (blockIdx.x - batch * tiles) * kWarp + threadIdx.x;
  float all = 0.0f;
  if (column < call.width) {
    const float* const from = at<const float>(member, call.from) + batch * call.lines * call.width + column;
#pragma unroll 8
    for (std::int64_t line = threadIdx.y; line < call.lines; line += kFoldRows) all += from[line * call.width];
  }
  shared[threadIdx.y][threadIdx.x] = all;
  __syncthreads();
  if (threadIdx.y != 0 || column >= call.width) return;
#pragma unroll
  for (int row = 1; row < kFoldRows; ++row) all += shared[row][threadIdx.x];
  at<float>(member, call.to)[batch * call.width + column] = all;
}

// Of few lines: a thread has V columns and takes all lines in their order.
template <int V>
__global__ void __launch_bounds__(kThreads) fold_few_kernel(const __grid_constant__ FoldCall call) {
  const std::int64_t column = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * V;
  if (skipped(call.members, blockIdx.y) || column >= call.width) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const float* const from = at<const float>(member, call.from) + column;
  float all[V] = {};
#pragma unroll 4
  for (std::int64_t line = 0; line < call.lines; ++line) {
    float one[V];
    load<float, V>(from + line * call.width, one);
#pragma unroll
    for (int j = 0; j < V; ++j) all[j] += one[j];
  }
  store<float, V>(at<float>(member, call.to) + column, all);
}

}  // namespace

int fold_lines(const FoldCall& call, Stream stream) {
  // Where there are columns enough for the card without sharing their lines.
  constexpr int kWide = 4;
  constexpr std::int64_t kFew = 64, kMany = 64 * 1024;
  if (call.batch == 1 && call.lines <= kFew && call.width >= kMany && call.width % kWide == 0 &&
      (call.from | call.to) % 16 == 0) {
    const dim3 few(blocks_for(call.width, kThreads * kWide), static_cast<unsigned>(call.members.count));
    fold_few_kernel<kWide><<<few, kThreads, 0, stream>>>(call);
    return launched();
  }
  const std::int64_t tiles = divide_up(call.width, kWarp);
  const dim3 grid(static_cast<unsigned>(tiles * call.batch), static_cast<unsigned>(call.members.count));
  fold_kernel<<<grid, dim3(kWarp, kFoldRows), 0, stream>>>(call, tiles);
  return launched();
}

}  // namespace norma::cuda
