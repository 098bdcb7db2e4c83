// V neighbouring floats beside V narrow numbers that one access takes: four in each.
#pragma once

#include "device/cuda/device.cuh"

namespace norma::cuda {

template <int V>
__device__ __forceinline__ void load_quads(const float* from, float (&v)[V]) {
  constexpr int kStep = V < 4 ? V : 4;
#pragma unroll
  for (int j = 0; j < V; j += kStep) {
    float some[kStep];
    load<float, kStep>(from + j, some);
#pragma unroll
    for (int k = 0; k < kStep; ++k) v[j + k] = some[k];
  }
}

template <int V>
__device__ __forceinline__ void store_quads(float* to, const float (&v)[V]) {
  constexpr int kStep = V < 4 ? V : 4;
#pragma unroll
  for (int j = 0; j < V; j += kStep) {
    float some[kStep];
#pragma unroll
    for (int k = 0; k < kStep; ++k) some[k] = v[j + k];
    store<float, kStep>(to + j, some);
  }
}

}  // namespace norma::cuda
