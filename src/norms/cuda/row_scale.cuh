// Terms and gradients times their scales, and the results in the widths that are wanted.
#pragma once

#include "norms/cuda/row_launch.h"
#include "norms/cuda/row_vector.cuh"

namespace norma::cuda {

// V neighbouring channels from `column` on.
template <int V>
__device__ __forceinline__ void scale_by(const RowScale& scale, std::byte* member, std::int64_t column, float (&v)[V]) {
  if (scale.at < 0) return;
  const float* const factor = at<const float>(member, scale.at);
  if (!scale.per_channel) {
    const float one = factor[0];
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] *= one;
    return;
  }
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] *= factor[column + j];
}

// Whether the fast kernels take scales. Those of a bf16 stream hold eight elements in each access and have no registers
// left: their calls with scales go to the general ones.
template <typename X>
constexpr bool kTakesScales = sizeof(X) > 2;

// NaN stays.
template <int V>
__device__ __forceinline__ void relu_of(float (&y)[V]) {
#pragma unroll
  for (int j = 0; j < V; ++j) y[j] = y[j] < 0.0f ? 0.0f : y[j];
}

// y at an element, in all the widths that are wanted.
template <typename X, typename Y, int V>
__device__ __forceinline__ void write_y(const RowNormCall& call, std::byte* member, std::int64_t to,
                                        const float (&y)[V]) {
  if (sizeof(X) == sizeof(Y) || call.y >= 0) store<Y, V>(at<Y>(member, call.y) + to, y);
  if (sizeof(X) > sizeof(Y) && call.wide_y >= 0) store<X, V>(at<X>(member, call.wide_y) + to, y);
}

__device__ __forceinline__ bool wants_dx(const RowNormBackwardCall& call) {
  return call.dx >= 0 || call.narrow_dx >= 0 || call.scaled > 0;
}

// dx at an element of `column`, and what scaled terms see of it.
template <typename X, int V, bool kScales>
__device__ __forceinline__ void write_gradients(const RowNormBackwardCall& call, std::byte* member, std::int64_t to,
                                                std::int64_t column, const float (&dx)[V]) {
  if (call.dx >= 0) store<X, V>(at<X>(member, call.dx) + to, dx);
  if (sizeof(X) > 2 && call.narrow_dx >= 0) {
    store<__nv_bfloat16, V>(at<__nv_bfloat16>(member, call.narrow_dx) + to, dx);
  }
  if constexpr (kScales) {
    for (int k = 0; k < call.scaled; ++k) {
      if (call.scaled_dx[k] < 0) continue;
      float scaled[V];
#pragma unroll
      for (int j = 0; j < V; ++j) scaled[j] = dx[j];
      scale_by<V>(call.scale[k], member, column, scaled);
      store<X, V>(at<X>(member, call.scaled_dx[k]) + to, scaled);
    }
  }
}

}  // namespace norma::cuda
