// What becomes of a sum over neighbours once it is complete.
#pragma once

#include "device/cuda/device.cuh"
#include "ops/cuda/activation_math.cuh"
#include "ops/cuda/neighbours.h"

namespace norma::cuda {

// `whole` and `bias` are read only where the call has them.
template <int V>
__device__ __forceinline__ void finish_neighbours(const NeighbourCall& call, float whole, const float (&bias)[V],
                                                  float (&sum)[V]) {
#pragma unroll
  for (int j = 0; j < V; ++j) {
    if (call.bias >= 0) {
      sum[j] = call.left >= 0 ? fmaf(whole, sum[j], bias[j]) : sum[j] + bias[j];
    } else if (call.left >= 0) {
      sum[j] *= whole;
    }
    if (call.relu) sum[j] = activation_value<Activation::relu, Exactness::f32>(sum[j]);
  }
}

}  // namespace norma::cuda
