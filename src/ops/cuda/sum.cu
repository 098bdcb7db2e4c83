// y = x1 + x2 + ... and z = a x + b y.
#include "norma/graph/sum.h"

#include "norma/ops/scaled_add.h"
#include "ops/cuda/limits.h"
#include "ops/cuda/map.cuh"

namespace norma {
namespace {

struct SumCall {
  cuda::Members members = {};
  std::int64_t out = 0, elements = 0;
  int terms = 0;
  std::int64_t term[kMostSumTerms] = {};
};

// Terms in order. The output may lie over a term: every element is read by the thread that writes it, before.
template <typename T, int V>
__global__ void __launch_bounds__(cuda::kThreads) sum_kernel(const __grid_constant__ SumCall call) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
  if (cuda::skipped(call.members, blockIdx.y) || first >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  float total[V];
  cuda::load<T, V>(cuda::at<const T>(member, call.term[0]) + first, total);
#pragma unroll 4
  for (int k = 1; k < call.terms; ++k) {
    float x[V];
    cuda::load<T, V>(cuda::at<const T>(member, call.term[k]) + first, x);
#pragma unroll
    for (int j = 0; j < V; ++j) total[j] += x[j];
  }
  cuda::store<T, V>(cuda::at<T>(member, call.out) + first, total);
}

template <typename T>
int sum_launch(const cuda::Call& call, std::int64_t elements) {
  SumCall told{.members = call.members, .out = call.out(0), .elements = elements, .terms = call.inputs};
  std::int64_t bits = told.out;
  for (int k = 0; k < told.terms; ++k) bits |= told.term[k] = call.in(k);
  const auto launch = [&]<int V>() {
    const dim3 grid(cuda::blocks_for(elements, cuda::kThreads * V), static_cast<unsigned>(call.members.count));
    sum_kernel<T, V><<<grid, cuda::kThreads, 0, call.stream>>>(told);
    return cuda::launched();
  };
  constexpr int kV = cuda::kWide<T>;
  return bits % 16 == 0 && elements % kV == 0 ? launch.template operator()<kV>() : launch.template operator()<1>();
}

struct ScaledAddCall {
  cuda::Members members = {};
  std::int64_t x = 0, y = 0, z = 0;
  std::int64_t a = cuda::kAbsent, b = cuda::kAbsent;  // absent: 1
  bool a_walks = false, b_walks = false;              // [width] each; else [1]
  std::int64_t elements = 0, width = 0;
};

template <typename T, int V>
__device__ __forceinline__ void load_scale(const T* scale, bool walks, std::int64_t column, float (&v)[V]) {
  if (scale != nullptr && walks) return cuda::load<T, V>(scale + column, v);
  const float one = scale == nullptr ? 1.0f : cuda::load_one(scale);
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = one;
}

template <typename T, int V>
__global__ void __launch_bounds__(cuda::kThreads) scaled_add_kernel(const __grid_constant__ ScaledAddCall call) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
  if (cuda::skipped(call.members, blockIdx.y) || first >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const bool walks = call.a_walks || call.b_walks;
  const std::int64_t column = walks ? first - cuda::quotient(first, call.width) * call.width : 0;
  float x[V], y[V], a[V], b[V];
  cuda::load<T, V>(cuda::at<const T>(member, call.x) + first, x);
  cuda::load<T, V>(cuda::at<const T>(member, call.y) + first, y);
  load_scale<T, V>(cuda::at<const T>(member, call.a), call.a_walks, column, a);
  load_scale<T, V>(cuda::at<const T>(member, call.b), call.b_walks, column, b);
#pragma unroll
  for (int j = 0; j < V; ++j) x[j] = fmaf(a[j], x[j], b[j] * y[j]);
  cuda::store<T, V>(cuda::at<T>(member, call.z) + first, x);
}

template <typename T>
int scaled_add_launch(const ScaledAddCall& told, cuda::Stream stream) {
  constexpr int kV = cuda::kWide<T>;
  const bool walks = told.a_walks || told.b_walks;
  const bool wide = cuda::aligned(16, {told.x, told.y, told.z, told.a_walks ? told.a : cuda::kAbsent,
                                       told.b_walks ? told.b : cuda::kAbsent}) &&
                    (walks ? told.width : told.elements) % kV == 0;
  const auto launch = [&]<int V>() {
    const dim3 grid(cuda::blocks_for(told.elements, cuda::kThreads * V), static_cast<unsigned>(told.members.count));
    scaled_add_kernel<T, V><<<grid, cuda::kThreads, 0, stream>>>(told);
    return cuda::launched();
  };
  return wide ? launch.template operator()<kV>() : launch.template operator()<1>();
}

}  // namespace

cuda::Program cuda_kernel(const Sum&, Types in, Types) {
  const std::int64_t elements = in[0].shape.elements();
  if (in[0].dtype == DType::bf16) {
    return {.launch = [elements](const cuda::Call& call) { return sum_launch<__nv_bfloat16>(call, elements); }};
  }
  return {.launch = [elements](const cuda::Call& call) { return sum_launch<float>(call, elements); }};
}

cuda::Program cuda_kernel(const ScaledAdd& op, Types in, Types) {
  const int a = op.scales_x() ? 2 : -1, b = op.scales_y() ? (op.scales_x() ? 3 : 2) : -1;
  const auto walks = [&](int index) { return index >= 0 && in[static_cast<std::size_t>(index)].shape.elements() > 1; };
  const ScaledAddCall shape{
      .a_walks = walks(a), .b_walks = walks(b), .elements = in[0].shape.elements(), .width = in[0].shape.channels()};
  return {.launch = [shape, a, b, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
    ScaledAddCall told = shape;
    told.members = call.members;
    told.x = call.in(0);
    told.y = call.in(1);
    told.z = call.out(0);
    if (a >= 0) told.a = call.in(a);
    if (b >= 0) told.b = call.in(b);
    return narrow ? scaled_add_launch<__nv_bfloat16>(told, call.stream) : scaled_add_launch<float>(told, call.stream);
  }};
}

}  // namespace norma
