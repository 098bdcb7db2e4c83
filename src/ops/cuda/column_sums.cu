// Sums over the rows of several tensors in two launches: each tensor in parts of rows, a line of sums for every part,
// then the lines in their order. Parts follow from the shapes alone.
#include "norma/ops/column_sums.h"

#include <algorithm>

#include "ops/cuda/column_lines.h"
#include "ops/cuda/fold.h"
#include "ops/cuda/map.cuh"

namespace norma {
namespace {

constexpr int kColumnWarps = 8;   // of a block: each takes every eighth row of a part, or every eighth line
constexpr int kAtOnceBytes = 64;  // of the rows that a thread has on their way
constexpr int kWidestColumns = cuda::kWide<__nv_bfloat16> * cuda::kWarp;  // of a block

// One of the tensors. Offsets are in bytes, `lines` f32 [parts, width] in scratch.
struct ColumnsOf {
  std::int64_t x = 0, out = 0, lines = 0;
  std::int32_t rows = 0, width = 0;
  std::int32_t parts = 1, tiles = 0;             // of rows and of columns: a block for each pair
  std::int32_t first_block = 0, first_fold = 0;  // of the first and of the second launch
  std::int32_t vector = 1;                       // elements of an access
  bool narrow = false;                           // bf16
};

struct ColumnSumsCall {
  cuda::Members members = {};
  std::int32_t count = 0;
  ColumnsOf of[kMostColumnSums] = {};
};

template <typename T, int V>
__device__ __forceinline__ void add_elements(cuda::Raw<T, V> raw, float (&sum)[V]) {
  float v[V];
  cuda::unpack<T, V>(raw, v);
#pragma unroll
  for (int j = 0; j < V; ++j) sum[j] += v[j];
}

template <typename T, int V>
__device__ __forceinline__ void add_rows_of_part(const ColumnsOf& of, std::byte* member, int tile, int part,
                                                 float (&shared)[kColumnWarps][kWidestColumns]) {
  constexpr int kColumns = cuda::kWarp * V;
  constexpr int kAtOnce = V == 1 ? 4 : kAtOnceBytes / (V * static_cast<int>(sizeof(T)));
  const int first = tile * kColumns, column = first + static_cast<int>(threadIdx.x) * V;
  const int rows = (of.rows + of.parts - 1) / of.parts, begin = part * rows;
  const int end = begin + rows < of.rows ? begin + rows : of.rows;
  float sum[V] = {};
  if (column < of.width) {
    const T* const x = cuda::at<const T>(member, of.x) + column;
    int row = begin + static_cast<int>(threadIdx.y);
    for (; row + (kAtOnce - 1) * kColumnWarps < end; row += kAtOnce * kColumnWarps) {
      cuda::Raw<T, V> raw[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        raw[k] = cuda::load_raw<T, V>(x + std::int64_t{row + k * kColumnWarps} * of.width);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) add_elements<T, V>(raw[k], sum);
    }
    for (; row < end; row += kColumnWarps)
      add_elements<T, V>(cuda::load_raw<T, V>(x + std::int64_t{row} * of.width), sum);
  }
  float* const mine = &shared[threadIdx.y][threadIdx.x * V];
  if constexpr (V == 1) {
    mine[0] = sum[0];
  } else {
#pragma unroll
    for (int j = 0; j < V; j += 4) cuda::store<float, 4>(mine + j, {sum[j], sum[j + 1], sum[j + 2], sum[j + 3]});
  }
  __syncthreads();
  float* const out = of.parts == 1 ? cuda::at<float>(member, of.out)
                                   : cuda::at<float>(member, of.lines) + std::int64_t{part} * of.width;
  const int thread = cuda::thread_index();
  if (thread >= kColumns || first + thread >= of.width) return;
  float all = shared[0][thread];
#pragma unroll
  for (int warp = 1; warp < kColumnWarps; ++warp) all += shared[warp][thread];
  out[first + thread] = all;
}

// The tensor that a block of the first launch works on, or of the second.
template <std::int32_t ColumnsOf::*kFirst>
__device__ __forceinline__ const ColumnsOf& tensor_of_block(const ColumnSumsCall& call) {
  int k = 0;
  while (k + 1 < call.count && static_cast<std::int32_t>(blockIdx.x) >= call.of[k + 1].*kFirst) ++k;
  return call.of[k];
}

__global__ void __launch_bounds__(cuda::kWarp* kColumnWarps)
    column_lines_kernel(const __grid_constant__ ColumnSumsCall call) {
  __shared__ __align__(16) float shared[kColumnWarps][kWidestColumns];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const ColumnsOf& of = tensor_of_block<&ColumnsOf::first_block>(call);
  const int block = static_cast<int>(blockIdx.x) - of.first_block, part = block / of.tiles;
  const int tile = block - part * of.tiles;
  if (of.narrow) {
    if (of.vector == 8) return add_rows_of_part<__nv_bfloat16, 8>(of, member, tile, part, shared);
    if (of.vector == 4) return add_rows_of_part<__nv_bfloat16, 4>(of, member, tile, part, shared);
    return add_rows_of_part<__nv_bfloat16, 1>(of, member, tile, part, shared);
  }
  of.vector == 4 ? add_rows_of_part<float, 4>(of, member, tile, part, shared)
                 : add_rows_of_part<float, 1>(of, member, tile, part, shared);
}

__global__ void __launch_bounds__(cuda::kWarp* kColumnWarps)
    column_folds_kernel(const __grid_constant__ ColumnSumsCall call) {
  __shared__ float shared[kColumnWarps][cuda::kWarp];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const ColumnsOf& of = tensor_of_block<&ColumnsOf::first_fold>(call);
  const int column = (static_cast<int>(blockIdx.x) - of.first_fold) * cuda::kWarp + static_cast<int>(threadIdx.x);
  float all = 0.0f;
  if (column < of.width) {
    const float* const from = cuda::at<const float>(member, of.lines) + column;
#pragma unroll 8
    for (int line = static_cast<int>(threadIdx.y); line < of.parts; line += kColumnWarps)
      all += from[std::int64_t{line} * of.width];
  }
  shared[threadIdx.y][threadIdx.x] = all;
  __syncthreads();
  if (threadIdx.y != 0 || column >= of.width) return;
#pragma unroll
  for (int warp = 1; warp < kColumnWarps; ++warp) all += shared[warp][threadIdx.x];
  cuda::at<float>(member, of.out)[column] = all;
}

enum class ColumnAccess { whole, single };  // several elements at a time where rows allow it, or one

// Blocks of the two launches, and bytes of all lines.
struct ColumnSumsPlan {
  ColumnSumsCall call = {};
  std::int64_t blocks = 0, folds = 0, bytes = 0;

  ColumnSumsPlan(Types in, ColumnAccess access) {
    for (const Type& x : in) {
      ColumnsOf& of = call.of[call.count++];
      of.rows = static_cast<std::int32_t>(x.shape.rows());
      of.width = static_cast<std::int32_t>(x.shape.channels());
      of.narrow = x.dtype == DType::bf16;
      // Half of 16 bytes where that gives all lanes something to do.
      int vector = of.narrow ? cuda::kWide<__nv_bfloat16> : cuda::kWide<float>;
      if (of.narrow && of.width <= cuda::kWarp * vector / 2) vector /= 2;
      of.vector = access == ColumnAccess::whole && of.width % vector == 0 ? vector : 1;
      of.tiles = static_cast<std::int32_t>(cuda::divide_up(of.width, cuda::kWarp * of.vector));
      of.parts = static_cast<std::int32_t>(cuda::line_parts(of.tiles, of.rows));
      of.first_block = static_cast<std::int32_t>(blocks);
      of.first_fold = static_cast<std::int32_t>(folds);
      of.lines = bytes;
      blocks += std::int64_t{of.tiles} * of.parts;
      if (of.parts == 1) continue;
      folds += cuda::divide_up(of.width, cuda::kWarp);
      bytes += cuda::round_up(std::int64_t{of.parts} * of.width * static_cast<std::int64_t>(sizeof(float)), 256);
    }
  }
};

}  // namespace

int cuda::column_lines(const ColumnLines& call, Stream stream) {
  const bool narrow = call.type == DType::bf16;
  const int vector = narrow ? kWide<__nv_bfloat16> : kWide<float>;
  ColumnsOf of{.x = call.x,
               .out = call.lines,
               .lines = call.lines,
               .rows = static_cast<std::int32_t>(call.rows),
               .width = static_cast<std::int32_t>(call.width),
               .parts = static_cast<std::int32_t>(call.count),
               .vector = call.x % 16 == 0 && call.width % vector == 0 ? vector : 1,
               .narrow = narrow};
  of.tiles = static_cast<std::int32_t>(divide_up(of.width, kWarp * of.vector));
  const ColumnSumsCall sums{.members = call.members, .count = 1, .of = {of}};
  const dim3 grid(static_cast<unsigned>(of.tiles * of.parts), static_cast<unsigned>(call.members.count));
  column_lines_kernel<<<grid, dim3(kWarp, kColumnWarps), 0, stream>>>(sums);
  return launched();
}

cuda::Program cuda_kernel(const ColumnSums&, Types in, Types) {
  const ColumnSumsPlan whole(in, ColumnAccess::whole), single(in, ColumnAccess::single);
  return {.launch =
              [whole, single](const cuda::Call& at) {
                bool is_aligned = true;  // a view may begin anywhere
                for (int k = 0; k < at.inputs; ++k) is_aligned = is_aligned && at.in(k) % 16 == 0;
                const ColumnSumsPlan& plan = is_aligned ? whole : single;
                ColumnSumsCall call = plan.call;
                call.members = at.members;
                for (int k = 0; k < call.count; ++k) {
                  call.of[k].x = at.in(k);
                  call.of[k].out = at.out(k);
                  call.of[k].lines += at.scratch;
                }
                const auto members = static_cast<unsigned>(at.members.count);
                const dim3 block(cuda::kWarp, kColumnWarps);
                column_lines_kernel<<<dim3(static_cast<unsigned>(plan.blocks), members), block, 0, at.stream>>>(call);
                if (const int error = cuda::launched(); error != 0 || plan.folds == 0) return error;
                column_folds_kernel<<<dim3(static_cast<unsigned>(plan.folds), members), block, 0, at.stream>>>(call);
                return cuda::launched();
              },
          .scratch_bytes = std::max(whole.bytes, single.bytes)};
}

}  // namespace norma
