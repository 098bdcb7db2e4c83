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
  std::uint64_t narrow = 0;  // bit k: term k is bf16
  std::int64_t term[kMostSumTerms] = {};
};
static_assert(kMostSumTerms <= 64);

template <int V>
__device__ __forceinline__ void load_term(const SumCall& call, int k, std::byte* member, std::int64_t at,
                                          float (&v)[V]) {
  if ((call.narrow >> k & 1) != 0)
    return cuda::load<__nv_bfloat16, V>(cuda::at<const __nv_bfloat16>(member, call.term[k]) + at, v);
  cuda::load<float, V>(cuda::at<const float>(member, call.term[k]) + at, v);
}

// Terms in order. The output may lie over a term: every element is read by the thread that writes it, before.
template <typename T, int V, bool kMixed>
__global__ void __launch_bounds__(cuda::kThreads) sum_kernel(const __grid_constant__ SumCall call) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
  if (cuda::skipped(call.members, blockIdx.y) || first >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  float total[V];
  const auto read = [&](int k, float(&v)[V]) {
    if constexpr (kMixed) {
      load_term<V>(call, k, member, first, v);
    } else {
      cuda::load<T, V>(cuda::at<const T>(member, call.term[k]) + first, v);
    }
  };
  read(0, total);
#pragma unroll 4
  for (int k = 1; k < call.terms; ++k) {
    float x[V];
    read(k, x);
#pragma unroll
    for (int j = 0; j < V; ++j) total[j] += x[j];
  }
  cuda::store<T, V>(cuda::at<T>(member, call.out) + first, total);
}

template <typename T, bool kMixed>
int sum_launch(const cuda::Call& call, std::int64_t elements, std::uint64_t narrow) {
  SumCall told{
      .members = call.members, .out = call.out(0), .elements = elements, .terms = call.inputs, .narrow = narrow};
  std::int64_t bits = told.out;
  for (int k = 0; k < told.terms; ++k) bits |= told.term[k] = call.in(k);
  const auto launch = [&]<int V>() {
    const dim3 grid(cuda::blocks_for(elements, cuda::kThreads * V), static_cast<unsigned>(call.members.count));
    sum_kernel<T, V, kMixed><<<grid, cuda::kThreads, 0, call.stream>>>(told);
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

template <int V>
__device__ __forceinline__ void load_scale(const float* scale, bool walks, std::int64_t column, float (&v)[V]) {
  if (scale != nullptr && walks) return cuda::load<float, V>(scale + column, v);
  const float one = scale == nullptr ? 1.0f : cuda::load_one(scale);
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = one;
}

template <typename X, typename Y, typename Z, int V>
__global__ void __launch_bounds__(cuda::kThreads) scaled_add_kernel(const __grid_constant__ ScaledAddCall call) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
  if (cuda::skipped(call.members, blockIdx.y) || first >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const bool walks = call.a_walks || call.b_walks;
  const std::int64_t column = walks ? first - cuda::quotient(first, call.width) * call.width : 0;
  float x[V], y[V], a[V], b[V];
  cuda::load<X, V>(cuda::at<const X>(member, call.x) + first, x);
  cuda::load<Y, V>(cuda::at<const Y>(member, call.y) + first, y);
  load_scale<V>(cuda::at<const float>(member, call.a), call.a_walks, column, a);
  load_scale<V>(cuda::at<const float>(member, call.b), call.b_walks, column, b);
#pragma unroll
  for (int j = 0; j < V; ++j) x[j] = fmaf(a[j], x[j], b[j] * y[j]);
  cuda::store<Z, V>(cuda::at<Z>(member, call.z) + first, x);
}

template <typename X, typename Y, typename Z>
int scaled_add_launch(const ScaledAddCall& told, cuda::Stream stream) {
  constexpr int kV = 4;  // the scales are f32
  const bool walks = told.a_walks || told.b_walks;
  const bool wide = cuda::aligned(16, {told.x, told.y, told.z, told.a_walks ? told.a : cuda::kAbsent,
                                       told.b_walks ? told.b : cuda::kAbsent}) &&
                    (walks ? told.width : told.elements) % kV == 0;
  const auto launch = [&]<int V>() {
    const dim3 grid(cuda::blocks_for(told.elements, cuda::kThreads * V), static_cast<unsigned>(told.members.count));
    scaled_add_kernel<X, Y, Z, V><<<grid, cuda::kThreads, 0, stream>>>(told);
    return cuda::launched();
  };
  return wide ? launch.template operator()<kV>() : launch.template operator()<1>();
}

}  // namespace

cuda::Program cuda_kernel(const Sum&, Types in, Types out) {
  const std::int64_t elements = in[0].shape.elements();
  std::uint64_t narrow = 0;
  for (std::size_t k = 0; k < in.size(); ++k) narrow |= std::uint64_t{in[k].dtype == DType::bf16} << k;
  const auto launch = out[0].dtype == DType::bf16 ? sum_launch<__nv_bfloat16, false>
                      : narrow != 0               ? sum_launch<float, true>
                                                  : sum_launch<float, false>;
  return {.launch = [=](const cuda::Call& call) { return launch(call, elements, narrow); }};
}

cuda::Program cuda_kernel(const ScaledAdd& op, Types in, Types) {
  using Narrow = __nv_bfloat16;
  const bool x_narrow = in[0].dtype == DType::bf16, y_narrow = in[1].dtype == DType::bf16;
  const auto launch =
      x_narrow   ? (y_narrow ? scaled_add_launch<Narrow, Narrow, Narrow> : scaled_add_launch<Narrow, float, float>)
      : y_narrow ? scaled_add_launch<float, Narrow, float>
                 : scaled_add_launch<float, float, float>;
  const int a = op.scales_x() ? 2 : -1, b = op.scales_y() ? (op.scales_x() ? 3 : 2) : -1;
  const auto walks = [&](int index) { return index >= 0 && in[static_cast<std::size_t>(index)].shape.elements() > 1; };
  const ScaledAddCall shape{
      .a_walks = walks(a), .b_walks = walks(b), .elements = in[0].shape.elements(), .width = in[0].shape.channels()};
  return {.launch = [shape, a, b, launch](const cuda::Call& call) {
    ScaledAddCall told = shape;
    told.members = call.members;
    told.x = call.in(0);
    told.y = call.in(1);
    told.z = call.out(0);
    if (a >= 0) told.a = call.in(a);
    if (b >= 0) told.b = call.in(b);
    return launch(told, call.stream);
  }};
}

}  // namespace norma
