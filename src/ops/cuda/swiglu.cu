// swiglu([gate, up]) = gate sigmoid(gate) up, the two halves of each row.
#include "norma/ops/activation.h"
#include "ops/cuda/map.cuh"

namespace norma {
namespace {

struct SwiGluCall {
  cuda::Members members = {};
  std::int64_t x = 0;   // [rows, 2 width]
  std::int64_t dy = 0;  // [rows, width]; backward only
  std::int64_t out = 0;
  std::int64_t elements = 0, width = 0;  // of y

  bool by(int v) const { return width % v == 0 && (x | dy | out) % 16 == 0; }
};

// Where the thread's V elements of y are, and those of gate; those of up are `width` further.
template <int V>
struct SwiGluPlace {
  std::int64_t y, gate;

  __device__ __forceinline__ explicit SwiGluPlace(const SwiGluCall& call)
      : y((std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V),
        gate(y + cuda::quotient(y, call.width) * call.width) {}
};

template <typename T, int V>
__global__ void __launch_bounds__(cuda::kThreads) swiglu_kernel(const __grid_constant__ SwiGluCall call) {
  const SwiGluPlace<V> place(call);
  if (cuda::skipped(call.members, blockIdx.y) || place.y >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const T* const x = cuda::at<const T>(member, call.x) + place.gate;
  float gate[V], up[V], y[V];
  cuda::load<T, V>(x, gate);
  cuda::load<T, V>(x + call.width, up);
#pragma unroll
  for (int j = 0; j < V; ++j) y[j] = gate[j] * (1.0f / (1.0f + expf(-gate[j]))) * up[j];
  cuda::store<T, V>(cuda::at<T>(member, call.out) + place.y, y);
}

template <typename T, int V>
__global__ void __launch_bounds__(cuda::kThreads) swiglu_backward_kernel(const __grid_constant__ SwiGluCall call) {
  const SwiGluPlace<V> place(call);
  if (cuda::skipped(call.members, blockIdx.y) || place.y >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const T* const x = cuda::at<const T>(member, call.x) + place.gate;
  T* const dx = cuda::at<T>(member, call.out) + place.gate;
  float gate[V], up[V], dy[V];
  cuda::load<T, V>(x, gate);
  cuda::load<T, V>(x + call.width, up);
  cuda::load<T, V>(cuda::at<const T>(member, call.dy) + place.y, dy);
#pragma unroll
  for (int j = 0; j < V; ++j) {
    const float g = gate[j], s = 1.0f / (1.0f + expf(-g));
    gate[j] = dy[j] * up[j] * (s * fmaf(g, 1.0f - s, 1.0f));
    up[j] = dy[j] * (g * s);
  }
  cuda::store<T, V>(dx, gate);
  cuda::store<T, V>(dx + call.width, up);
}

template <typename T>
int swiglu_launch(const SwiGluCall& told, cuda::Stream stream) {
  constexpr int kV = cuda::kWide<T>;
  const auto grid = [&](int v) {
    return dim3(cuda::blocks_for(told.elements, cuda::kThreads * v), static_cast<unsigned>(told.members.count));
  };
  if (told.by(kV)) {
    swiglu_kernel<T, kV><<<grid(kV), cuda::kThreads, 0, stream>>>(told);
  } else {
    swiglu_kernel<T, 1><<<grid(1), cuda::kThreads, 0, stream>>>(told);
  }
  return cuda::launched();
}

template <typename T>
int swiglu_backward_launch(const SwiGluCall& told, cuda::Stream stream) {
  constexpr int kV = cuda::kWide<T>;
  const auto grid = [&](int v) {
    return dim3(cuda::blocks_for(told.elements, cuda::kThreads * v), static_cast<unsigned>(told.members.count));
  };
  if (told.by(kV)) {
    swiglu_backward_kernel<T, kV><<<grid(kV), cuda::kThreads, 0, stream>>>(told);
  } else {
    swiglu_backward_kernel<T, 1><<<grid(1), cuda::kThreads, 0, stream>>>(told);
  }
  return cuda::launched();
}

}  // namespace

cuda::Program cuda_kernel(const SwiGlu&, Types in, Types out) {
  const std::int64_t elements = out[0].shape.elements(), width = out[0].shape.channels();
  return {.launch = [elements, width, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
    const SwiGluCall told{call.members, call.in(0), 0, call.out(0), elements, width};
    return narrow ? swiglu_launch<__nv_bfloat16>(told, call.stream) : swiglu_launch<float>(told, call.stream);
  }};
}

cuda::Program cuda_kernel(const SwiGluBackward&, Types in, Types) {
  const std::int64_t elements = in[1].shape.elements(), width = in[1].shape.channels();
  return {.launch = [elements, width, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
    const SwiGluCall told{call.members, call.in(0), call.in(1), call.out(0), elements, width};
    return narrow ? swiglu_backward_launch<__nv_bfloat16>(told, call.stream)
                  : swiglu_backward_launch<float>(told, call.stream);
  }};
}

}  // namespace norma
