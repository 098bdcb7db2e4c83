// Sums over rows: lines of partial sums, each over its own rows, then the lines in their order. The order follows from
// shapes alone.
#pragma once

#include "norms/cuda/row_group.cuh"
#include "norms/cuda/row_launch.h"
#include "norms/cuda/row_vector.cuh"

namespace norma::cuda {

// out[i] = the sum over lines of scratch[line * stride + from + i], for each active member
struct LinesCall {
  Members members;
  std::int64_t scratch = 0;
  std::int64_t lines = 0, stride = 0;  // in floats
  std::int64_t width = 0;
  std::int64_t out[2] = {kAbsent, kAbsent};  // dgain from 0 on, dbias from `width` on
};
int add_lines(const LinesCall& call, Stream stream);
// out[k] are [lines, width]: zero from the second line on.
int clear_further_lines(const LinesCall& call, std::int64_t lines, Stream stream);

constexpr int kColumnRows = 8;  // rows of a tile that are read at once

// scratch[line] = {dgain [width], dbias [width]} of the line's rows. One block per tile of kWarp * V columns and line.
template <typename X, typename Y, int V>
__global__ void __launch_bounds__(kWarp* kColumnRows)
    column_sums_kernel(const __grid_constant__ RowNormBackwardCall call) {
  __shared__ float shared[kColumnRows][2][kWarp * V];
  const Members& members = call.members;
  if (members.active != nullptr && members.active[blockIdx.z] == 0) return;
  std::byte* const member = members.base + blockIdx.z * members.stride;
  const X* const x = at<const X>(member, call.x);
  const Y* const dy = at<const Y>(member, call.dy);
  const float* const rstd = at<const float>(member, call.rstd);
  const float* const mean = at<const float>(member, call.mean);
  const int tile = static_cast<int>(threadIdx.x) * V;
  const std::int64_t column = std::int64_t{kWarp} * V * blockIdx.x + tile;
  float dgain[V] = {}, dbias[V] = {};
  if (column < call.width) {
    for (std::int64_t row = std::int64_t{blockIdx.y} * kColumnRows + threadIdx.y; row < call.rows;
         row += std::int64_t{gridDim.y} * kColumnRows) {
      float xs[V], g[V];
      load<X, V>(x + row * call.width + column, xs);
      load<Y, V>(dy + row * call.width + column, g);
      const float shift = mean == nullptr ? 0.0f : mean[row], scale = rstd[row];
#pragma unroll
      for (int j = 0; j < V; ++j) {
        dgain[j] += g[j] * ((xs[j] - shift) * scale);
        dbias[j] += g[j];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < V; ++j) {
    shared[threadIdx.y][0][tile + j] = dgain[j];
    shared[threadIdx.y][1][tile + j] = dbias[j];
  }
  __syncthreads();
  float* const line = at<float>(member, call.scratch) + std::int64_t{blockIdx.y} * 2 * call.width;
  for (int i = static_cast<int>(threadIdx.y * kWarp + threadIdx.x); i < 2 * kWarp * V; i += kWarp * kColumnRows) {
    const int which = i / (kWarp * V), inside = i % (kWarp * V);
    const std::int64_t to = std::int64_t{kWarp} * V * blockIdx.x + inside;
    float all = 0.0f;
    for (int row = 0; row < kColumnRows; ++row) all += shared[row][which][inside];
    if (to < call.width) line[which * call.width + to] = all;
  }
}

}  // namespace norma::cuda
