// Kernels of every row norm for what the fast ones leave: rows of any width and alignment, any number of terms and
// residuals. One block per row, which it walks again for each pass: the row comes from memory once, then from cache.
// Policies as in row_norm.cuh.
#pragma once

#include "norms/cuda/row_group.cuh"
#include "norms/cuda/row_launch.h"
#include "norms/cuda/row_scale.cuh"
#include "norms/cuda/row_vector.cuh"

namespace norma::cuda {

// step(i) for the pieces of V elements of a row that this thread has.
template <int V, typename Step>
__device__ inline void for_pieces(std::int64_t width, const Step& step) {
  for (std::int64_t i = std::int64_t{V} * threadIdx.x; i < width; i += std::int64_t{V} * blockDim.x) step(i);
}

// The sum of a row's terms at element i of the tensor, in the stream's precision.
template <typename X, typename Y, int V>
__device__ inline void add_terms(const RowNormCall& call, std::byte* member, std::int64_t i, float (&v)[V]) {
  load<X, V>(at<const X>(member, call.term[0]) + i, v);
  if (call.scaled) scale_by<V>(call.scale[0], member, i % call.width, v);
  for (int k = 1; k < call.terms; ++k) {
    float other[V];
    load<Y, V>(at<const Y>(member, call.term[k]) + i, other);
    if (call.scaled) scale_by<V>(call.scale[k], member, i % call.width, other);
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] += other[j];
  }
  if (call.terms > 1) round_to<X, V>(v);
}

template <class Norm, typename X, typename Y, int V>
__global__ void __launch_bounds__(1024)
    row_norm_general_kernel(const __grid_constant__ RowNormCall call, const float inverse) {
  __shared__ RowGroup<1>::Shared shared;
  const Members& members = call.members;
  if (members.active != nullptr && members.active[blockIdx.y] == 0) return;
  std::byte* const member = members.base + blockIdx.y * members.stride;
  const std::int64_t row = blockIdx.x, width = call.width, begin = row * width;
  RowGroup<1> group({static_cast<int>(blockDim.x), 1}, shared);
  X* const sum_out = call.terms > 1 ? at<X>(member, call.sum) : nullptr;
  // The sum may lie over a term, so it is read back where it has been written: by this thread, which wrote it.
  const auto again = [&](std::int64_t i, float(&v)[V]) {
    sum_out != nullptr ? load<X, V>(sum_out + begin + i, v) : add_terms<X, Y, V>(call, member, begin + i, v);
  };

  float total[1] = {0.0f}, squares[1] = {0.0f};
  for_pieces<V>(width, [&](std::int64_t i) {
    float v[V];
    add_terms<X, Y, V>(call, member, begin + i, v);
    if (sum_out != nullptr) store<X, V>(sum_out + begin + i, v);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      if constexpr (Norm::kCentred) {
        total[0] += v[j];
      } else if (i + j < call.counted) {
        squares[0] += v[j] * v[j];
      }
    }
  });
  float mean = 0.0f;
  if constexpr (Norm::kCentred) {
    group.sum(total);
    mean = total[0] * inverse;
    for_pieces<V>(width, [&](std::int64_t i) {
      float v[V];
      again(i, v);
#pragma unroll
      for (int j = 0; j < V; ++j) squares[0] += (v[j] - mean) * (v[j] - mean);
    });
  }
  group.sum(squares);
  const float rstd = Norm::rstd(squares[0], inverse, *at<const float>(member, call.eps));
  if (threadIdx.x == 0) {
    if (call.rstd >= 0) at<float>(member, call.rstd)[row] = rstd;
    if (Norm::kCentred && call.mean >= 0) at<float>(member, call.mean)[row] = mean;
  }
  const float* const gain = at<const float>(member, call.gain);
  const float* const bias = Norm::kBias ? at<const float>(member, call.bias) : nullptr;
  for_pieces<V>(width, [&](std::int64_t i) {
    float v[V];
    again(i, v);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      v[j] = (v[j] - mean) * rstd;
      if (gain != nullptr) v[j] *= gain[Norm::kOneGain ? 0 : i + j];
      if (bias != nullptr) v[j] += bias[i + j];
    }
    if (call.relu) relu_of(v);
    write_y<X, Y, V>(call, member, begin + i, v);
  });
}

template <class Norm, typename X, typename Y, int V>
__global__ void __launch_bounds__(1024)
    row_backward_general_kernel(const __grid_constant__ RowNormBackwardCall call, const float inverse) {
  __shared__ RowGroup<2>::Shared shared;
  const Members& members = call.members;
  if (members.active != nullptr && members.active[blockIdx.y] == 0) return;
  std::byte* const member = members.base + blockIdx.y * members.stride;
  const std::int64_t row = blockIdx.x, width = call.width, begin = row * width;
  RowGroup<2> group({static_cast<int>(blockDim.x), 1}, shared);
  const float* const gain = at<const float>(member, call.gain);
  const float rstd = at<const float>(member, call.rstd)[row];
  const float mean = Norm::kCentred ? at<const float>(member, call.mean)[row] : 0.0f;
  const auto read = [&](std::int64_t i, float(&xh)[V], float(&g)[V]) {
    load<X, V>(at<const X>(member, call.x) + begin + i, xh);
    load<Y, V>(at<const Y>(member, call.dy) + begin + i, g);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      xh[j] = (xh[j] - mean) * rstd;
      if (!Norm::kOneGain && gain != nullptr) g[j] *= gain[i + j];
    }
  };

  float total[2] = {0.0f, 0.0f};  // of g xh, of g
  for_pieces<V>(width, [&](std::int64_t i) {
    float xh[V], g[V];
    read(i, xh, g);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      total[0] += g[j] * xh[j];
      total[1] += g[j];
    }
  });
  group.sum(total);
  const float scale = Norm::kOneGain && gain != nullptr ? rstd * gain[0] : rstd;
  const float shift = Norm::kCentred ? total[1] * inverse * scale : 0.0f;
  const float pull = total[0] * Norm::pull(rstd, inverse, *at<const float>(member, call.eps)) * scale;
  // A row's share of the one gain's gradient: nobody else writes here.
  if (Norm::kOneGain && call.dgain >= 0 && threadIdx.x == 0) at<float>(member, call.scratch)[row] = total[0];
  if (!wants_dx(call)) return;
  for_pieces<V>(width, [&](std::int64_t i) {
    float xh[V], g[V];
    read(i, xh, g);
#pragma unroll
    for (int j = 0; j < V; ++j) g[j] = g[j] * scale - shift - (i + j < call.counted ? xh[j] * pull : 0.0f);
    for (int k = 0; k < call.residuals; ++k) {
      float residual[V];
      load<X, V>(at<const X>(member, call.residual[k]) + begin + i, residual);
#pragma unroll
      for (int j = 0; j < V; ++j) g[j] += residual[j];
    }
    write_gradients<X, V, true>(call, member, begin + i, i, g);
  });
}

}  // namespace norma::cuda
