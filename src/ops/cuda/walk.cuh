// z = f(a, b) where a and b are repeated to the shape of z: the axes of z, as few as possible, and how far each input
// moves along them.
#pragma once

#include <array>

#include "device/cuda/device.cuh"
#include "norma/core/shape.h"
#include "ops/cuda/map.cuh"

namespace norma::cuda {

template <int kInputs>
struct Walk {
  int axes = 1;
  std::int64_t size[Shape::kMaxRank] = {1};
  std::int64_t stride[kInputs][Shape::kMaxRank] = {};  // in elements; 0: the input repeats along this axis

  std::int64_t elements() const {
    std::int64_t product = 1;
    for (int axis = 0; axis < axes; ++axis) product *= size[axis];
    return product;
  }
  bool dense() const {
    bool all = axes == 1;
    for (int k = 0; k < kInputs; ++k) all = all && (stride[k][0] == 1 || size[0] == 1);
    return all;
  }
  // Whether V neighbours of z come from V neighbours of every input, or from one element.
  bool by(int v) const {
    bool all = size[axes - 1] % v == 0;
    for (int k = 0; k < kInputs; ++k) {
      all = all && stride[k][axes - 1] <= 1;
      const bool walks = stride[k][axes - 1] == 1;
      for (int axis = 0; axis < axes - 1; ++axis) all = all && (!walks || stride[k][axis] % v == 0);
    }
    return all;
  }
  // Where each input is at the index-th V elements of z.
  template <int V>
  __device__ __forceinline__ void find(std::int64_t index, std::int64_t (&from)[kInputs]) const {
    for (int axis = axes - 1; axis >= 0; --axis) {
      const bool last = axis == axes - 1;
      const std::int64_t length = last ? size[axis] / V : size[axis], above = axis == 0 ? 0 : quotient(index, length);
      const std::int64_t here = (index - above * length) * (last ? V : 1);
#pragma unroll
      for (int k = 0; k < kInputs; ++k) from[k] += here * stride[k][axis];
      index = above;
    }
  }
  // One axis more, inside the others; made one with its neighbour where all inputs walk through both without a jump.
  void add(std::int64_t length, const std::array<std::int64_t, kInputs>& strides) {
    if (length == 1) return;
    bool joins = true;
    for (int k = 0; k < kInputs && joins; ++k) {
      joins = size[axes - 1] == 1 || stride[k][axes - 1] == strides[static_cast<std::size_t>(k)] * length;
    }
    const int axis = joins ? axes - 1 : axes++;
    size[axis] = joins ? size[axis] * length : length;
    for (int k = 0; k < kInputs; ++k) stride[k][axis] = strides[static_cast<std::size_t>(k)];
  }
};

// Shapes broadcast as in NumPy: aligned at the last axis.
template <int kInputs>
Walk<kInputs> walk_of(const Shape& out, const std::array<Shape, kInputs>& in) {
  std::array<std::array<std::int64_t, Shape::kMaxRank>, kInputs> strides{};
  for (std::size_t k = 0; k < kInputs; ++k) {
    std::int64_t stride = 1;
    for (int axis = in[k].rank() - 1; axis >= 0; --axis) {
      const int to = axis + out.rank() - in[k].rank();
      strides[k][static_cast<std::size_t>(to)] = in[k][axis] == 1 ? 0 : stride;
      stride *= in[k][axis];
    }
  }
  Walk<kInputs> walk;
  for (int axis = 0; axis < out.rank(); ++axis) {
    std::array<std::int64_t, kInputs> here{};
    for (std::size_t k = 0; k < kInputs; ++k) here[k] = strides[k][static_cast<std::size_t>(axis)];
    walk.add(out[axis], here);
  }
  return walk;
}

template <typename T, int V, int kInputs, class F>
__global__ void __launch_bounds__(kThreads)
    walk_kernel(const __grid_constant__ MapCall<kInputs> call, const __grid_constant__ Walk<kInputs> walk, const F f) {
  if (skipped(call.members, blockIdx.y)) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const std::int64_t index = std::int64_t{blockIdx.x} * kThreads + threadIdx.x, to = index * V;
  if (to >= call.n) return;
  std::int64_t from[kInputs] = {};
  walk.template find<V>(index, from);
  float x[kInputs][V], y[V];
#pragma unroll
  for (int k = 0; k < kInputs; ++k) {
    const T* const in = at<const T>(member, call.in[k]) + from[k];
    if (V == 1 || walk.stride[k][walk.axes - 1] != 0) {
      load<T, V>(in, x[k]);
    } else {
      const float one = load_one(in);
#pragma unroll
      for (int j = 0; j < V; ++j) x[k][j] = one;
    }
  }
  f(x, y);
  store<T, V>(at<T>(member, call.out) + to, y);
}

template <typename T, int kInputs, class F>
int walk_launch(const Call& call, const Walk<kInputs>& walk, const F& f) {
  const std::int64_t n = walk.elements();
  if (walk.dense()) return map<T, kInputs>(call, n, f);
  MapCall<kInputs> told{.members = call.members, .out = call.out(0), .n = n};
  std::int64_t bits = told.out;
  for (int k = 0; k < kInputs; ++k) bits |= told.in[k] = call.in(k);
  const auto launch = [&]<int V>() {
    const dim3 grid(blocks_for(n, kThreads * V), static_cast<unsigned>(call.members.count));
    walk_kernel<T, V, kInputs><<<grid, kThreads, 0, call.stream>>>(told, walk, f);
    return launched();
  };
  return bits % 16 == 0 && walk.by(kWide<T>) ? launch.template operator()<kWide<T>>() : launch.template operator()<1>();
}

template <int kInputs, class F>
Program walk_program(DType dtype, const Walk<kInputs>& walk, const F& f) {
  if (dtype == DType::bf16) {
    return {.launch = [walk, f](const Call& call) { return walk_launch<__nv_bfloat16>(call, walk, f); }};
  }
  return {.launch = [walk, f](const Call& call) { return walk_launch<float>(call, walk, f); }};
}

}  // namespace norma::cuda
