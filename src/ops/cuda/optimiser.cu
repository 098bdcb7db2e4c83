// All optimisers in one pass over p, g and their states, for all parameters and members in one launch.
#include "device/cuda/device.cuh"
#include "ops/cuda/optimiser_call.h"

namespace norma {
namespace {

// The numbers of this step for one parameter; as on the CPU.
struct StepRates {
  float lr, shrink, l2, beta1, beta2, eps, correction1, root_correction2, rectify, scale;

  __device__ __forceinline__ StepRates(const float* control, float gradient_scale, const OptimiserParameter& of) {
    using C = OptimiserControl;
    lr = control[C::lr] * of.lr;
    shrink = control[C::shrink] * of.shrink;
    l2 = control[C::l2] * of.l2;
    beta1 = control[C::beta1];
    beta2 = control[C::beta2];
    eps = control[C::eps] * of.eps;
    correction1 = control[C::correction1];
    root_correction2 = sqrtf(control[C::correction2]);
    rectify = control[C::rectify];
    scale = gradient_scale;
  }
};

// Nothing changes while a member is inactive or its gradients are not finite.
__device__ __forceinline__ bool step_applies(const float* control, float scale) {
  return control[OptimiserControl::active] != 0.0f && isfinite(scale);
}

// Updates one element; returns the square of what p changes by.
template <OptimiserKind kind>
__device__ __forceinline__ float step_element(const StepRates& r, float g, float& p, float& m, float& v) {
  const float old = p, grad = fmaf(r.l2, old, g * r.scale);
  float step = grad;
  if constexpr (kind == OptimiserKind::sgd) {
    m = fmaf(r.beta1, m, grad);
    step = r.lr * m;
  } else if constexpr (kind == OptimiserKind::adagrad) {
    v = fmaf(grad, grad, v);
    step = r.lr * grad / (sqrtf(v) + r.eps);
  } else {
    m = fmaf(r.beta1, m, (1.0f - r.beta1) * grad);
    v = fmaf(r.beta2, v, (1.0f - r.beta2) * (grad * grad));
    step = r.lr / r.correction1 * m;
    if constexpr (kind == OptimiserKind::adam) {
      step = step / (sqrtf(v) / r.root_correction2 + r.eps);
    } else if (r.rectify > 0.0f) {
      step = step * (r.rectify * r.root_correction2) / (sqrtf(v) + r.eps);
    }
  }
  const float change = fmaf(r.shrink, old, step);
  p = old - change;
  return change * change;
}

template <OptimiserKind kind, int V>
__device__ __forceinline__ float step_elements(const StepRates& r, const float* g_at, float* p_at, float* m_at,
                                               float* v_at) {
  constexpr bool kFirst = kind != OptimiserKind::adagrad, kSecond = kind != OptimiserKind::sgd;
  float g[V], p[V], m[V] = {}, v[V] = {}, squares = 0.0f;
  cuda::load<float, V>(g_at, g);
  cuda::load<float, V>(p_at, p);
  if constexpr (kFirst) cuda::load<float, V>(m_at, m);
  if constexpr (kSecond) cuda::load<float, V>(v_at, v);
#pragma unroll
  for (int j = 0; j < V; ++j) squares += step_element<kind>(r, g[j], p[j], m[j], v[j]);
  cuda::store<float, V>(p_at, p);
  if constexpr (kFirst) cuda::store<float, V>(m_at, m);
  if constexpr (kSecond) cuda::store<float, V>(v_at, v);
  return squares;
}

template <OptimiserKind kind>
__global__ void __launch_bounds__(cuda::kThreads) update_kernel(const __grid_constant__ OptimiserCall call) {
  __shared__ double shared[cuda::kMostWarps];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const float* const control = cuda::at<const float>(member, call.control);
  const float scale = *cuda::at<const float>(member, call.scale);
  const bool applies = step_applies(control, scale);  // for all threads alike
  float squares = 0.0f;
  if (applies) {
    const OptimiserPiece piece = call.pieces[blockIdx.x];
    const OptimiserParameter& of = call.parameters[piece.parameter];
    const StepRates rates(control, scale, of);
    const float* const g = cuda::at<const float>(member, of.g) + piece.begin;
    float* const p = cuda::at<float>(member, of.p) + piece.begin;
    float* const m = cuda::at<float>(member, of.m) + piece.begin;
    float* const v = cuda::at<float>(member, of.v) + piece.begin;
    const std::int64_t left = of.rows * of.width - piece.begin;
    const int count = static_cast<int>(left < kOptimiserPiece ? left : kOptimiserPiece);
    const int whole = of.wide != 0 ? count / 4 * 4 : 0, thread = static_cast<int>(threadIdx.x);
    for (int i = thread * 4; i < whole; i += cuda::kThreads * 4) {
      squares += step_elements<kind, 4>(rates, g + i, p + i, m + i, v + i);
    }
    for (int i = whole + thread; i < count; i += cuda::kThreads) {
      squares += step_elements<kind, 1>(rates, g + i, p + i, m + i, v + i);
    }
  }
  if (call.sums < 0) return;
  const double all = cuda::block_sum(static_cast<double>(squares), shared);
  if (threadIdx.x == 0) cuda::at<double>(member, call.sums)[blockIdx.x] = all;
}

// Adds up the squares of the pieces of a parameter, in one order.
__global__ void __launch_bounds__(cuda::kThreads) change_kernel(const __grid_constant__ OptimiserCall call) {
  __shared__ double shared[cuda::kMostWarps];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const OptimiserParameter& of = call.parameters[blockIdx.x];
  const double* const sums = cuda::at<const double>(member, call.sums) + of.first;
  double all = 0;
  for (std::int64_t i = threadIdx.x; i < of.pieces; i += cuda::kThreads) all += sums[i];
  all = cuda::block_sum(all, shared);
  if (threadIdx.x == 0) cuda::at<double>(member, call.squares)[blockIdx.x] = all;
}

constexpr int kUnitWarps = cuda::kMostWarps;

// A row of p, by a warp.
__device__ __forceinline__ void make_unit_row(float* p, std::int64_t width) {
  const int lane = static_cast<int>(threadIdx.x);
  float squares = 0.0f;
#pragma unroll 4
  for (std::int64_t i = lane; i < width; i += cuda::kWarp) squares = fmaf(p[i], p[i], squares);
  const float factor = 1.0f / sqrtf(cuda::warp_sum(squares));
  for (std::int64_t i = lane; i < width; i += cuda::kWarp) p[i] *= factor;
}

// kWarp columns of p from `p` on, of which `columns` exist, by the whole block.
__device__ __forceinline__ void make_unit_columns(float* p, std::int64_t rows, std::int64_t width, std::int64_t columns,
                                                  float (&shared)[kUnitWarps][cuda::kWarp]) {
  const bool has = threadIdx.x < columns;
  float squares = 0.0f;
  if (has) {
#pragma unroll 4
    for (std::int64_t row = threadIdx.y; row < rows; row += kUnitWarps) {
      const float x = p[row * width + threadIdx.x];
      squares = fmaf(x, x, squares);
    }
  }
  shared[threadIdx.y][threadIdx.x] = squares;
  __syncthreads();
  if (!has) return;
  squares = 0.0f;
  for (int warp = 0; warp < kUnitWarps; ++warp) squares += shared[warp][threadIdx.x];
  const float length = sqrtf(squares);
  for (std::int64_t row = threadIdx.y; row < rows; row += kUnitWarps) p[row * width + threadIdx.x] /= length;
}

// Brings kWarp vectors back to unit length.
__global__ void __launch_bounds__(cuda::kWarp* kUnitWarps) unit_kernel(const __grid_constant__ OptimiserCall call) {
  __shared__ float shared[kUnitWarps][cuda::kWarp];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  if (!step_applies(cuda::at<const float>(member, call.control), *cuda::at<const float>(member, call.scale))) return;
  const OptimiserPiece piece = call.units[blockIdx.x];
  const OptimiserParameter& of = call.parameters[piece.parameter];
  float* const p = cuda::at<float>(member, of.p);
  if (of.unit == static_cast<std::int32_t>(UnitVectors::rows)) {
    const std::int64_t row = piece.begin + threadIdx.y;
    if (row < of.rows) make_unit_row(p + row * of.width, of.width);
  } else {
    make_unit_columns(p + piece.begin, of.rows, of.width, of.width - piece.begin, shared);
  }
}

dim3 optimiser_grid(std::int64_t blocks, const OptimiserCall& call) {
  return dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(call.members.count));
}

}  // namespace

int launch_update(OptimiserKind kind, const OptimiserCall& call, std::int64_t pieces, cuda::Stream stream) {
  const dim3 grid = optimiser_grid(pieces, call);
  switch (kind) {
    case OptimiserKind::adam: update_kernel<OptimiserKind::adam><<<grid, cuda::kThreads, 0, stream>>>(call); break;
    case OptimiserKind::radam: update_kernel<OptimiserKind::radam><<<grid, cuda::kThreads, 0, stream>>>(call); break;
    case OptimiserKind::sgd: update_kernel<OptimiserKind::sgd><<<grid, cuda::kThreads, 0, stream>>>(call); break;
    case OptimiserKind::adagrad:
      update_kernel<OptimiserKind::adagrad><<<grid, cuda::kThreads, 0, stream>>>(call);
      break;
  }
  return cuda::launched();
}

int launch_units(const OptimiserCall& call, std::int64_t units, cuda::Stream stream) {
  unit_kernel<<<optimiser_grid(units, call), dim3(cuda::kWarp, kUnitWarps), 0, stream>>>(call);
  return cuda::launched();
}

int launch_squares(const OptimiserCall& call, std::int64_t parameters, cuda::Stream stream) {
  change_kernel<<<optimiser_grid(parameters, call), cuda::kThreads, 0, stream>>>(call);
  return cuda::launched();
}

}  // namespace norma
