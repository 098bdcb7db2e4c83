// y[i] = f(x0[i], x1[i], ...) for tensors of one size and dtype. A function object is called with kInputs rows of V
// numbers and fills a row: switches on what it does are then taken once for all of them.
#pragma once

#include "device/cuda/device.cuh"
#include "norma/core/shape.h"

namespace norma::cuda {

template <typename T>
constexpr int kWide = 16 / static_cast<int>(sizeof(T));  // elements of a whole access

template <int kInputs>
struct MapCall {
  Members members = {};
  std::int64_t in[kInputs] = {};
  std::int64_t out = 0;
  std::int64_t n = 0;
};

// An output may lie over an input: every element is read by the thread that writes it, before.
template <typename T, int V, int kInputs, class F>
__global__ void __launch_bounds__(kThreads) map_kernel(const __grid_constant__ MapCall<kInputs> call, const F f) {
  if (skipped(call.members, blockIdx.y)) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * V;
  T* const out = at<T>(member, call.out);
  if (first + V <= call.n) {
    float x[kInputs][V], y[V];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) load<T, V>(at<const T>(member, call.in[k]) + first, x[k]);
    f(x, y);
    store<T, V>(out + first, y);
    return;
  }
  if constexpr (V > 1) {  // nvcc 12.4 does not end on what follows for single elements, which it can never reach
#pragma unroll 1
    for (std::int64_t i = first; i < call.n; ++i) {
      float x[kInputs][1], y[1];
#pragma unroll
      for (int k = 0; k < kInputs; ++k) x[k][0] = load_one(at<const T>(member, call.in[k]) + i);
      f(x, y);
      store_one(out + i, y[0]);
    }
  }
}

template <typename T, int kInputs, class F>
int map(const Call& call, std::int64_t n, const F& f) {
  MapCall<kInputs> told{.members = call.members, .out = call.out(0), .n = n};
  std::int64_t bits = told.out;
  for (int k = 0; k < kInputs; ++k) bits |= told.in[k] = call.in(k);
  const auto launch = [&]<int V>() {
    const dim3 grid(blocks_for(n, kThreads * V), static_cast<unsigned>(call.members.count));
    map_kernel<T, V, kInputs><<<grid, kThreads, 0, call.stream>>>(told, f);
    return launched();
  };
  return bits % 16 == 0 ? launch.template operator()<kWide<T>>() : launch.template operator()<1>();
}

template <int kInputs, class F>
Program map_program(const Type& type, const F& f) {
  const std::int64_t n = type.shape.elements();
  if (type.dtype == DType::bf16) {
    return {.launch = [n, f](const Call& call) { return map<__nv_bfloat16, kInputs>(call, n, f); }};
  }
  return {.launch = [n, f](const Call& call) { return map<float, kInputs>(call, n, f); }};
}

}  // namespace norma::cuda
