// Gather of rows, and indices as rows of zeros with a one.
#include "norma/ops/embedding.h"

#include "norma/ops/one_hot.h"
#include "ops/cuda/map.cuh"
#include "ops/cuda/quads.cuh"

namespace norma {
namespace {

struct GatherCall {
  cuda::Members members = {};
  std::int64_t table = 0, ids = 0;
  std::int64_t positions = cuda::kAbsent, time = 1;              // f32 [time, width], added
  std::int64_t out = cuda::kAbsent, narrow_out = cuda::kAbsent;  // f32, and the same in bf16
  std::int64_t vocabulary = 0, elements = 0, width = 0;
};

template <int V>
__global__ void __launch_bounds__(cuda::kThreads) gather_kernel(const __grid_constant__ GatherCall call) {
  const std::int64_t to = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
  if (cuda::skipped(call.members, blockIdx.y) || to >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t row = cuda::quotient(to, call.width), column = to - row * call.width;
  const std::int64_t id = cuda::at<const std::int32_t>(member, call.ids)[row];
  float v[V];
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = __int_as_float(0x7fc00000);  // NaN
  if (id >= 0 && id < call.vocabulary) {
    cuda::load_quads<V>(cuda::at<const float>(member, call.table) + id * call.width + column, v);
  }
  if (call.positions >= 0) {
    const std::int64_t step = row - cuda::quotient(row, call.time) * call.time;
    float position[V];
    cuda::load_quads<V>(cuda::at<const float>(member, call.positions) + step * call.width + column, position);
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] += position[j];
  }
  if (call.narrow_out >= 0) cuda::store<__nv_bfloat16, V>(cuda::at<__nv_bfloat16>(member, call.narrow_out) + to, v);
  if (call.out >= 0) cuda::store_quads<V>(cuda::at<float>(member, call.out) + to, v);
}

struct OneHotCall {
  cuda::Members members = {};
  std::int64_t targets = 0, out = 0;
  std::int64_t elements = 0, classes = 0;
  std::int32_t ignore = 0;
};

__global__ void __launch_bounds__(cuda::kThreads) one_hot_kernel(const __grid_constant__ OneHotCall call) {
  const std::int64_t to = std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x;
  if (cuda::skipped(call.members, blockIdx.y) || to >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t row = cuda::quotient(to, call.classes), column = to - row * call.classes;
  const std::int32_t target = cuda::at<const std::int32_t>(member, call.targets)[row];
  const bool ignored = target == call.ignore, known = ignored || (target >= 0 && target < call.classes);
  const float hot = !ignored && target == column ? 1.0f : 0.0f;
  cuda::at<float>(member, call.out)[to] = known ? hot : __int_as_float(0x7fc00000);
}

}  // namespace

cuda::Program cuda_kernel(const Embedding&, Types in, Types out) {
  const bool adds = in.size() == 3, twin = out.size() == 2;
  const GatherCall shape{.time = adds ? in[2].shape[0] : 1,
                         .vocabulary = in[0].shape[0],
                         .elements = out[0].shape.elements(),
                         .width = in[0].shape[1]};
  return {.launch = [=](const cuda::Call& call) {
    GatherCall told = shape;
    told.members = call.members;
    told.table = call.in(0);
    told.ids = call.in(1);
    told.out = call.out(0);
    std::int64_t bits = told.table;
    if (told.out >= 0) bits |= told.out;
    if (adds) bits |= told.positions = call.in(2);
    if (twin) told.narrow_out = call.out(1);
    if (told.narrow_out >= 0) bits |= told.narrow_out;
    const auto grid = [&](int v) {
      return dim3(cuda::blocks_for(told.elements, cuda::kThreads * v), static_cast<unsigned>(call.members.count));
    };
    if (bits % 16 == 0 && told.width % 8 == 0) {
      gather_kernel<8><<<grid(8), cuda::kThreads, 0, call.stream>>>(told);
    } else if (bits % 16 == 0 && told.width % 4 == 0) {
      gather_kernel<4><<<grid(4), cuda::kThreads, 0, call.stream>>>(told);
    } else {
      gather_kernel<1><<<grid(1), cuda::kThreads, 0, call.stream>>>(told);
    }
    return cuda::launched();
  }};
}

cuda::Program cuda_kernel(const OneHot& op, Types, Types out) {
  const OneHotCall shape{.elements = out[0].shape.elements(), .classes = op.classes(), .ignore = op.ignore()};
  return {.launch = [shape](const cuda::Call& call) {
    OneHotCall told = shape;
    told.members = call.members;
    told.targets = call.in(0);
    told.out = call.out(0);
    const dim3 grid(cuda::blocks_for(told.elements, cuda::kThreads), static_cast<unsigned>(call.members.count));
    one_hot_kernel<<<grid, cuda::kThreads, 0, call.stream>>>(told);
    return cuda::launched();
  }};
}

}  // namespace norma
