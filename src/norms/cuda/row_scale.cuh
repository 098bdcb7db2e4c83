// Terms and gradients times their scales.
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

}  // namespace norma::cuda
