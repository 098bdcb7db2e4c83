// Softmax over the last axis with an optional mask, and its gradient. A row is a warp's, or a block's where it is long.
#include "norma/ops/softmax.h"

#include "device/cuda/device.cuh"

namespace norma {
namespace {

constexpr std::int64_t kSoftmaxWarpRow = 1024;  // the longest row of a warp

struct SoftmaxCall {
  cuda::Members members = {};
  std::int64_t x = 0, y = 0;
  std::int64_t lengths = cuda::kAbsent;  // i32 [samples]
  std::int64_t rows = 0, keys = 0, queries = 0, rows_per_sample = 0;
  bool causal = false;
};

// y may lie over x: what is written is read by the same thread alone, after the last sum.
template <int kTeam>
__global__ void __launch_bounds__(cuda::kThreads) softmax_kernel(const __grid_constant__ SoftmaxCall call) {
  __shared__ float shared[cuda::kMostWarps];
  using Team = cuda::Team<kTeam>;
  const std::int64_t row = Team::index();
  if (cuda::skipped(call.members, blockIdx.y) || row >= call.rows) return;  // a whole team
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  std::int64_t seen = call.causal ? row - cuda::quotient(row, call.queries) * call.queries + 1 : call.keys;
  if (const std::int32_t* const lengths = cuda::at<const std::int32_t>(member, call.lengths)) {
    const std::int64_t length = lengths[cuda::quotient(row, call.rows_per_sample)];
    seen = length < 0 ? 0 : (length < seen ? length : seen);
  }
  const float* const x = cuda::at<const float>(member, call.x) + row * call.keys;
  float* const y = cuda::at<float>(member, call.y) + row * call.keys;
  float largest = __int_as_float(0xff800000);  // -infinity
  for (std::int64_t i = Team::lane(); i < seen; i += kTeam) largest = fmaxf(largest, x[i]);
  largest = Team::max(largest, shared);
  // A NaN that the maximum missed comes back through the sum.
  float total = 0.0f;
  for (std::int64_t i = Team::lane(); i < seen; i += kTeam) total += expf(x[i] - largest);
  const float inverse = 1.0f / Team::sum(total, shared);
  for (std::int64_t i = Team::lane(); i < call.keys; i += kTeam)
    y[i] = i < seen ? expf(x[i] - largest) * inverse : 0.0f;
}

struct SoftmaxBackwardCall {
  cuda::Members members = {};
  std::int64_t y = 0, dy = 0, dx = 0;
  std::int64_t rows = 0, keys = 0;
};

// dx = y (dy - sum of y dy); dx may lie over y or dy.
template <int kTeam>
__global__ void __launch_bounds__(cuda::kThreads)
    softmax_backward_kernel(const __grid_constant__ SoftmaxBackwardCall call) {
  __shared__ float shared[cuda::kMostWarps];
  using Team = cuda::Team<kTeam>;
  const std::int64_t row = Team::index(), first = row * call.keys;
  if (cuda::skipped(call.members, blockIdx.y) || row >= call.rows) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const float* const y = cuda::at<const float>(member, call.y) + first;
  const float* const dy = cuda::at<const float>(member, call.dy) + first;
  float* const dx = cuda::at<float>(member, call.dx) + first;
  float dot = 0.0f;
  for (std::int64_t i = Team::lane(); i < call.keys; i += kTeam) dot = fmaf(y[i], dy[i], dot);
  dot = Team::sum(dot, shared);
  for (std::int64_t i = Team::lane(); i < call.keys; i += kTeam) dx[i] = y[i] * (dy[i] - dot);
}

dim3 softmax_grid(std::int64_t rows, int team, int members) {
  return dim3(cuda::blocks_for(rows, cuda::kThreads / team), static_cast<unsigned>(members));
}

}  // namespace

cuda::Program cuda_kernel(const Softmax& op, Types in, Types) {
  const Shape& x = in[0].shape;
  const SoftmaxCall shape{.rows = x.rows(),
                          .keys = x.channels(),
                          .queries = x.rank() > 1 ? x[-2] : 1,
                          .rows_per_sample = x.rows() / (x.rank() > 1 ? x[0] : 1),
                          .causal = op.mask() == Mask::causal};
  return {.launch = [shape, with_lengths = in.size() > 1](const cuda::Call& call) {
    SoftmaxCall told = shape;
    told.members = call.members;
    told.x = call.in(0);
    told.y = call.out(0);
    if (with_lengths) told.lengths = call.in(1);
    if (told.keys <= kSoftmaxWarpRow) {
      softmax_kernel<cuda::kWarp>
          <<<softmax_grid(told.rows, cuda::kWarp, call.members.count), cuda::kThreads, 0, call.stream>>>(told);
    } else {
      softmax_kernel<cuda::kThreads>
          <<<softmax_grid(told.rows, cuda::kThreads, call.members.count), cuda::kThreads, 0, call.stream>>>(told);
    }
    return cuda::launched();
  }};
}

cuda::Program cuda_kernel(const SoftmaxBackward&, Types in, Types) {
  const std::int64_t rows = in[0].shape.rows(), keys = in[0].shape.channels();
  return {.launch = [rows, keys](const cuda::Call& call) {
    const SoftmaxBackwardCall told{call.members, call.in(0), call.in(1), call.out(0), rows, keys};
    if (keys <= kSoftmaxWarpRow) {
      softmax_backward_kernel<cuda::kWarp>
          <<<softmax_grid(rows, cuda::kWarp, call.members.count), cuda::kThreads, 0, call.stream>>>(told);
    } else {
      softmax_backward_kernel<cuda::kThreads>
          <<<softmax_grid(rows, cuda::kThreads, call.members.count), cuda::kThreads, 0, call.stream>>>(told);
    }
    return cuda::launched();
  }};
}

}  // namespace norma
