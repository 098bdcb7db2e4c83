// Lines of partial sums: how many there are, and adding them up.
#include "norms/cuda/column_sums.cuh"

#include <algorithm>

#include "norms/cuda/row_lines.cuh"

namespace norma::cuda {
namespace {

// Of an H100 or H200. Other cards take the blocks in more or fewer turns; the sums are the same.
constexpr std::int64_t kMultiprocessors = 132;

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// A block takes kWarp columns, each of its warps every kMostWarps-th line.
__global__ void __launch_bounds__(kWarp* kMostWarps) add_lines_kernel(const __grid_constant__ LinesCall call) {
  __shared__ float shared[kMostWarps][kWarp + 1];
  const Members& members = call.members;
  if (members.active != nullptr && members.active[blockIdx.z] == 0) return;
  std::byte* const member = members.base + blockIdx.z * members.stride;
  float* const out = at<float>(member, call.out[blockIdx.y]);
  if (out == nullptr) return;
  const std::int64_t column = std::int64_t{kWarp} * blockIdx.x + threadIdx.x;
  const float* const from = at<const float>(member, call.scratch) + blockIdx.y * call.width + column;
  float all = 0.0f;
  if (column < call.width) {
#pragma unroll 4
    for (std::int64_t line = threadIdx.y; line < call.lines; line += kMostWarps) all += from[line * call.stride];
  }
  shared[threadIdx.y][threadIdx.x] = all;
  __syncthreads();
  float sum[1] = {shared[threadIdx.x][threadIdx.y]};  // transposed: a warp has all parts of one column
  sum_over_warp(sum);
  const std::int64_t to = std::int64_t{kWarp} * blockIdx.x + threadIdx.y;
  if (threadIdx.x == 0 && to < call.width) out[to] = sum[0];
}

// A block takes a line of one of the two.
__global__ void __launch_bounds__(kWarp* kMostWarps) clear_lines_kernel(const __grid_constant__ LinesCall call) {
  const Members& members = call.members;
  if (members.active != nullptr && members.active[blockIdx.z] == 0) return;
  float* const out = at<float>(members.base + blockIdx.z * members.stride, call.out[blockIdx.y]);
  if (out == nullptr) return;
  for (std::int64_t i = threadIdx.x; i < call.width; i += blockDim.x) out[(blockIdx.x + 1) * call.width + i] = 0.0f;
}

}  // namespace

int clear_further_lines(const LinesCall& call, std::int64_t lines, Stream stream) {
  if (lines < 2) return 0;
  const dim3 grid(static_cast<unsigned>(lines - 1), 2, static_cast<unsigned>(call.members.count));
  clear_lines_kernel<<<grid, 256, 0, stream>>>(call);
  return static_cast<int>(cudaGetLastError());
}

int add_lines(const LinesCall& call, Stream stream) {
  const dim3 grid(static_cast<unsigned>(ceil_divide(call.width, kWarp)), 2, static_cast<unsigned>(call.members.count));
  add_lines_kernel<<<grid, dim3(kWarp, kMostWarps), 0, stream>>>(call);
  return static_cast<int>(cudaGetLastError());
}

bool sums_dx(std::int64_t width) { return width > 2 * kWarp * 8 && width <= 3 * kWarp * 8; }

bool sums_short_dx(std::int64_t width) { return width <= kWarp / 2 * 4; }

// Few pieces per thread and many threads, unless the row is too wide for them. Narrow rows go to small blocks: there
// are often few of them per member, and one block begins while another ends.
BackwardLines backward_lines(RowTypes types, std::int64_t rows, std::int64_t width, int residuals, int members) {
  const int vector = types == RowTypes::bf16 ? 8 : 4, pieces = types == RowTypes::bf16 ? 2 : 4;
  const std::int64_t narrow = types == RowTypes::f32 ? 2048 : types == RowTypes::bf16 ? 256 : 512;
  BackwardLines lines;
  lines.pieces = width <= narrow ? 1 : pieces;
  // A warp for a row, without idle lanes or a barrier: two warps of two pieces would be a quarter idle.
  if (types == RowTypes::bf16 && sums_dx(width)) lines.pieces = 3, lines.hold = Hold::stage;
  lines.map.lanes = static_cast<int>(ceil_divide(width, kWarp * vector * lines.pieces)) * kWarp;
  while (lines.map.lanes <= kWarp && lines.map.lanes / 2 * vector * lines.pieces >= width) lines.map.lanes /= 2;
  // 320 lanes: two groups of them fit if they hold less.
  const bool alone = lines.map.lanes > 256 && lines.map.lanes <= 320;
  if (types == RowTypes::bf16 && lines.pieces > 1 && (residuals > 0 || alone)) lines.hold = Hold::stage;
  const bool small =
      lines.hold == Hold::registers && (lines.pieces > 1 ? lines.map.lanes <= 128 : lines.map.lanes < kWarp);
  const int most = most_backward_threads(lines.pieces, lines.hold);
  const int threads = small ? most / 2 : most;
  lines.map.groups = std::max(1, threads / lines.map.lanes);
  if (lines.map.lanes > kWarp) lines.map.groups = std::min(lines.map.groups, 15);  // each has a barrier of its own
  // A block pays for its line: two rows per group at least.
  const std::int64_t resident = kMultiprocessors * (small ? 2 : 1);
  lines.count = std::clamp<std::int64_t>(ceil_divide(rows, 2 * lines.map.groups), 1, resident);
  // Few rows of several warps each: twice the blocks, half as large, all with the same number of rows.
  if (lines.pieces == 1 && lines.map.lanes > kWarp && lines.map.lanes <= 256 &&
      rows <= 8 * lines.count * lines.map.groups) {
    lines.map.groups = 512 / lines.map.lanes;
    const std::int64_t each = std::max<std::int64_t>(2, ceil_divide(rows, 2 * kMultiprocessors * lines.map.groups));
    lines.count = ceil_divide(rows, each * lines.map.groups);
  }
  // Many members fill the card together: two turns of blocks with more rows, and fewer lines to pay for. (One turn and
  // four are 2 and 1 % slower for a step of 64 members of 2,048 rows of 128.)
  const std::int64_t enough = std::max<std::int64_t>(1, ceil_divide(2 * resident, members));
  if (enough < lines.count) {
    const std::int64_t each = ceil_divide(rows, enough * lines.map.groups);
    lines.count = ceil_divide(rows, each * lines.map.groups);
  }
  return lines;
}

std::int64_t general_lines(std::int64_t rows, std::int64_t width) {
  const std::int64_t enough = std::clamp<std::int64_t>(2048 / ceil_divide(width, 4 * kWarp), 1, 256);
  return std::clamp<std::int64_t>(ceil_divide(rows, 64), 1, enough);
}

std::int64_t enough_backward_lines(std::int64_t rows, std::int64_t width) {
  std::int64_t lines = 1;
  for (const RowTypes types : {RowTypes::f32, RowTypes::bf16, RowTypes::f32_stream_bf16_branch}) {
    for (int residuals = 0; width <= kWidestBackward && residuals < 2; ++residuals)
      lines = std::max(lines, backward_lines(types, rows, width, residuals).count);
  }
  return lines;
}

std::int64_t row_backward_scratch(RowTypes types, std::int64_t rows, std::int64_t width) {
  std::int64_t lines = general_lines(rows, width);
  for (int residuals = 0; width <= kWidestBackward && residuals < 2; ++residuals) {
    lines = std::max(lines, backward_lines(types, rows, width, residuals).count);
  }
  const std::int64_t floats = std::max(lines * 2 * width, rows);  // one number per row if the norm has one gain
  return ceil_divide(floats * static_cast<std::int64_t>(sizeof(float)), 16) * 16;
}

}  // namespace norma::cuda
