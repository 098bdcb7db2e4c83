// Sums over axes. What is summed over has fixed parts; sums of parts lie in scratch and are added in order. The parts
// follow from the shapes alone.
#include "norma/ops/reduce.h"

#include "ops/cuda/fold.h"
#include "ops/cuda/walk.cuh"

namespace norma {
namespace {

struct SumToCall {
  cuda::Members members = {};
  std::int64_t x = 0, out = 0;
  cuda::Walk<1> kept = {}, summed = {};        // over x
  std::int64_t outputs = 0, terms = 0;         // elements of the two
  std::int64_t parts = 1, terms_per_part = 0;  // of the terms of one output
};

__device__ __forceinline__ std::int64_t sum_to_place(const cuda::Walk<1>& walk, std::int64_t index) {
  if (walk.axes == 1) return index * walk.stride[0][0];
  std::int64_t from[1] = {};
  walk.find<1>(index, from);
  return from[0];
}

// Terms lie side by side: a team to an output and part, out[output][part]. V > 1: all terms of an output lie side by
// side and divide by V.
template <typename T, int kTeam, int V>
__global__ void __launch_bounds__(cuda::kThreads) sum_rows_kernel(const __grid_constant__ SumToCall call) {
  __shared__ float shared[cuda::kMostWarps];
  using Team = cuda::Team<kTeam>;
  const std::int64_t index = Team::index();
  if (cuda::skipped(call.members, blockIdx.y) || index >= call.outputs * call.parts) return;  // a whole team
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t output = cuda::quotient(index, call.parts), part = index - output * call.parts;
  const T* const x = cuda::at<const T>(member, call.x) + sum_to_place(call.kept, output);
  const std::int64_t begin = part * call.terms_per_part, left = call.terms - begin;
  const std::int64_t end = begin + (left < call.terms_per_part ? left : call.terms_per_part);
  float sum[V] = {};
#pragma unroll 4
  for (std::int64_t i = begin + Team::lane() * V; i < end; i += kTeam * V) {
    float v[V];
    cuda::load<T, V>(x + (V == 1 ? sum_to_place(call.summed, i) : i), v);
#pragma unroll
    for (int j = 0; j < V; ++j) sum[j] += v[j];
  }
  float all = sum[0];
#pragma unroll
  for (int j = 1; j < V; ++j) all += sum[j];
  all = Team::sum(all, shared);
  if (Team::lane() == 0) cuda::at<float>(member, call.out)[index] = all;
}

constexpr int kSumRows = 8, kAtOnce = 8;

// Outputs lie side by side: a block takes kWarp * V of them and a part of the terms, out[part][output].
template <typename T, int V>
__global__ void __launch_bounds__(cuda::kWarp* kSumRows) sum_columns_kernel(const __grid_constant__ SumToCall call) {
  __shared__ float shared[kSumRows][cuda::kWarp * V];
  if (cuda::skipped(call.members, blockIdx.z)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const std::int64_t column = (std::int64_t{blockIdx.x} * cuda::kWarp + threadIdx.x) * V;
  const std::int64_t begin = blockIdx.y * call.terms_per_part, left = call.terms - begin;
  const std::int64_t end = begin + (left < call.terms_per_part ? left : call.terms_per_part);
  float sum[V] = {};
  if (column < call.outputs) {
    std::int64_t from[1] = {};
    call.kept.find<V>(column / V, from);
    const T* const x = cuda::at<const T>(member, call.x) + from[0];
    const auto add = [&](const auto& place) {
#pragma unroll kAtOnce
      for (std::int64_t i = begin + threadIdx.y; i < end; i += kSumRows) {
        float v[V];
        cuda::load<T, V>(x + place(i), v);
#pragma unroll
        for (int j = 0; j < V; ++j) sum[j] += v[j];
      }
    };
    // A walk over several axes between the loads would keep them from being on their way together.
    const std::int64_t stride = call.summed.stride[0][0];
    if (call.summed.axes == 1) {
      add([stride](std::int64_t i) { return i * stride; });
    } else {
      add([&](std::int64_t i) { return sum_to_place(call.summed, i); });
    }
  }
#pragma unroll
  for (int j = 0; j < V; ++j) shared[threadIdx.y][threadIdx.x * V + j] = sum[j];
  __syncthreads();
  if (threadIdx.y != 0 || column >= call.outputs) return;
#pragma unroll
  for (int row = 1; row < kSumRows; ++row) {
#pragma unroll
    for (int j = 0; j < V; ++j) sum[j] += shared[row][threadIdx.x * V + j];
  }
  float* const out = cuda::at<float>(member, call.out) + blockIdx.y * call.outputs + column;
  if constexpr (V <= 4) {
    cuda::store<float, V>(out, sum);
  } else {
#pragma unroll
    for (int j = 0; j < V; j += 4) cuda::store<float, 4>(out + j, {sum[j], sum[j + 1], sum[j + 2], sum[j + 3]});
  }
}

template <typename T, int kTeam>
int sum_rows_by(const SumToCall& told, cuda::Stream stream) {
  const dim3 grid(cuda::blocks_for(told.outputs * told.parts, cuda::Team<kTeam>::kPerBlock),
                  static_cast<unsigned>(told.members.count));
  const bool wide = told.x % 16 == 0 && told.summed.axes == 1 && told.summed.stride[0][0] == 1 && told.terms % 4 == 0 &&
                    (told.outputs == 1 || told.kept.axes == 1) && told.kept.stride[0][told.kept.axes - 1] % 4 == 0;
  if (wide) {
    sum_rows_kernel<T, kTeam, 4><<<grid, cuda::kThreads, 0, stream>>>(told);
  } else {
    sum_rows_kernel<T, kTeam, 1><<<grid, cuda::kThreads, 0, stream>>>(told);
  }
  return cuda::launched();
}

template <typename T>
int sum_rows(const SumToCall& told, cuda::Stream stream) {
  if (told.terms_per_part <= 16) return sum_rows_by<T, 1>(told, stream);
  return told.terms_per_part <= 2048 ? sum_rows_by<T, cuda::kWarp>(told, stream)
                                     : sum_rows_by<T, cuda::kThreads>(told, stream);
}

// Parts of 16384 terms, a multiple of every V.
constexpr std::int64_t kRowPart = 16384;
std::int64_t row_parts(std::int64_t outputs, std::int64_t terms) {
  return outputs >= 1024 ? 1 : cuda::divide_up(terms, kRowPart);
}

template <typename T>
int sum_rows_in_parts(SumToCall told, const cuda::Call& call) {
  told.terms_per_part = told.parts == 1 ? told.terms : kRowPart;
  if (told.parts == 1) return sum_rows<T>(told, call.stream);
  told.out = call.scratch;
  if (const int error = sum_rows<T>(told, call.stream); error != 0) return error;
  SumToCall rest{.members = call.members, .x = call.scratch, .out = call.out(0), .outputs = told.outputs};
  rest.terms = rest.terms_per_part = told.parts;
  rest.kept.add(told.outputs, {told.parts});
  rest.summed.add(told.parts, {1});
  return sum_rows<float>(rest, call.stream);
}

// Terms of a part: what all warps of a block have on their way at once, some times over.
template <typename T>
std::int64_t terms_of_part(std::int64_t outputs, std::int64_t terms) {
  const std::int64_t tiles =
      cuda::divide_up(outputs, cuda::kWarp * (outputs % cuda::kWide<T> == 0 ? cuda::kWide<T> : 1));
  const std::int64_t even = std::max<std::int64_t>(cuda::divide_up(terms, cuda::line_parts(tiles, terms)), 1);
  return even == terms ? even : cuda::round_up(even, kSumRows * kAtOnce);
}

template <typename T>
int sum_columns_in_parts(SumToCall told, const cuda::Call& call) {
  if (told.parts > 1) told.out = call.scratch;
  const auto grid = [&](int v) {
    return dim3(cuda::blocks_for(told.outputs, cuda::kWarp * v), static_cast<unsigned>(told.parts),
                static_cast<unsigned>(call.members.count));
  };
  const dim3 block(cuda::kWarp, kSumRows);
  constexpr int kV = cuda::kWide<T>;
  bool wide = (told.x | told.out) % 16 == 0 && told.kept.by(kV) && told.outputs % kV == 0;
  for (int axis = 0; axis < told.summed.axes; ++axis) wide = wide && told.summed.stride[0][axis] % kV == 0;
  if (wide) {
    sum_columns_kernel<T, kV><<<grid(kV), block, 0, call.stream>>>(told);
  } else {
    sum_columns_kernel<T, 1><<<grid(1), block, 0, call.stream>>>(told);
  }
  const int error = cuda::launched();
  if (error != 0 || told.parts == 1) return error;
  return cuda::fold_lines(
      {.members = call.members, .from = call.scratch, .to = call.out(0), .lines = told.parts, .width = told.outputs},
      call.stream);
}

}  // namespace

template <typename T>
static cuda::Program sum_to_program(Types in, Types out) {
  const Shape &from = in[0].shape, &to = out[0].shape;
  SumToCall shape;
  bool rows = false;  // whether the last axis longer than 1 is summed over
  std::int64_t strides[Shape::kMaxRank] = {}, stride = 1;
  for (int axis = from.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= from[axis];
  }
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] == 1) continue;
    const int target = axis - (from.rank() - to.rank());
    rows = target < 0 || to[target] == 1;
    (rows ? shape.summed : shape.kept).add(from[axis], {strides[axis]});
  }
  shape.outputs = shape.kept.elements();
  shape.terms = shape.summed.elements();
  if (!rows) shape.terms_per_part = terms_of_part<T>(shape.outputs, shape.terms);
  shape.parts = rows ? row_parts(shape.outputs, shape.terms) : cuda::divide_up(shape.terms, shape.terms_per_part);
  const std::int64_t scratch =
      shape.parts > 1 ? shape.parts * shape.outputs * static_cast<std::int64_t>(sizeof(float)) : 0;
  return {.launch =
              [shape, rows](const cuda::Call& call) {
                SumToCall told = shape;
                told.members = call.members;
                told.x = call.in(0);
                told.out = call.out(0);
                return rows ? sum_rows_in_parts<T>(told, call) : sum_columns_in_parts<T>(told, call);
              },
          .scratch_bytes = scratch};
}

cuda::Program cuda_kernel(const SumTo&, Types in, Types out) {
  return in[0].dtype == DType::bf16 ? sum_to_program<__nv_bfloat16>(in, out) : sum_to_program<float>(in, out);
}

}  // namespace norma
