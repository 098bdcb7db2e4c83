// y = x (1 + scale) + shift of samples: a thread to some channels of a position. Backward a block has some channels of
// one sample and walks its positions; their sums have one order.
#include "norma/ops/modulate.h"

#include "ops/cuda/map.cuh"

namespace norma {
namespace {

struct ModulateCall {
  cuda::Members members = {};
  std::int64_t x = 0, scale = 0, shift = 0, y = 0;
  std::int64_t batch = 0, positions = 0, width = 0;
};

template <class T, int V>
__global__ void __launch_bounds__(cuda::kThreads) modulate_kernel(const __grid_constant__ ModulateCall call) {
  const std::int64_t index = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
  const std::int64_t row = cuda::quotient(index, call.width), sample = cuda::quotient(row, call.positions);
  if (cuda::skipped(call.members, blockIdx.y) || sample >= call.batch) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t of = sample * call.width + (index - row * call.width);
  float x[V], scale[V], shift[V];
  cuda::load<T, V>(cuda::at<const T>(member, call.x) + index, x);
  cuda::load<T, V>(cuda::at<const T>(member, call.scale) + of, scale);
  cuda::load<T, V>(cuda::at<const T>(member, call.shift) + of, shift);
#pragma unroll
  for (int j = 0; j < V; ++j) x[j] = fmaf(x[j], 1.0f + scale[j], shift[j]);
  cuda::store<T, V>(cuda::at<T>(member, call.y) + index, x);
}

struct ModulateBackwardCall {
  cuda::Members members = {};
  std::int64_t x = 0, scale = 0, dy = 0;
  std::int64_t dx = cuda::kAbsent, dscale = cuda::kAbsent, dshift = cuda::kAbsent;
  std::int64_t batch = 0, positions = 0, width = 0, tiles = 0;
};

// A block is as many threads wide as there are channels for, and shares the positions among the rest.
template <class T, int V>
__global__ void __launch_bounds__(cuda::kThreads)
    modulate_backward_kernel(const __grid_constant__ ModulateBackwardCall call) {
  __shared__ float shared[2][cuda::kThreads * V];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t sample = cuda::quotient(blockIdx.x, call.tiles);
  const int across = static_cast<int>(blockDim.x), rows = static_cast<int>(blockDim.y);
  const int lane = static_cast<int>(threadIdx.x), down = static_cast<int>(threadIdx.y);
  const std::int64_t column = ((blockIdx.x - sample * call.tiles) * across + lane) * V;
  const bool has = column < call.width;
  const std::int64_t of = sample * call.width + column, first = sample * call.positions * call.width + column;
  float factor[V] = {}, dscale[V] = {}, dshift[V] = {};
  if (has) cuda::load<T, V>(cuda::at<const T>(member, call.scale) + of, factor);
#pragma unroll
  for (int j = 0; j < V; ++j) factor[j] += 1.0f;
#pragma unroll 4
  for (std::int64_t row = down; row < (has ? call.positions : 0); row += rows) {
    float x[V], dy[V];
    cuda::load<T, V>(cuda::at<const T>(member, call.x) + first + row * call.width, x);
    cuda::load<T, V>(cuda::at<const T>(member, call.dy) + first + row * call.width, dy);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      dscale[j] = fmaf(dy[j], x[j], dscale[j]);
      dshift[j] += dy[j];
      dy[j] *= factor[j];
    }
    if (call.dx >= 0) cuda::store<T, V>(cuda::at<T>(member, call.dx) + first + row * call.width, dy);
  }
#pragma unroll
  for (int j = 0; j < V; ++j) {
    shared[0][(down * across + lane) * V + j] = dscale[j];
    shared[1][(down * across + lane) * V + j] = dshift[j];
  }
  __syncthreads();
  if (down >= 2 || !has) return;  // one for each of both sums
  float all[V] = {};
  for (int other = 0; other < rows; ++other) {
#pragma unroll
    for (int j = 0; j < V; ++j) all[j] += shared[down][(other * across + lane) * V + j];
  }
  const std::int64_t to = down == 0 ? call.dscale : call.dshift;
  if (to >= 0) cuda::store<T, V>(cuda::at<T>(member, to) + of, all);
}

template <class T, int V>
int run_modulate(const ModulateCall& told, cuda::Stream stream) {
  const dim3 grid(cuda::blocks_for(told.batch * told.positions * told.width, cuda::kThreads * V),
                  static_cast<unsigned>(told.members.count));
  modulate_kernel<T, V><<<grid, cuda::kThreads, 0, stream>>>(told);
  return cuda::launched();
}

template <class T, int V>
int run_modulate_backward(ModulateBackwardCall told, cuda::Stream stream) {
  int across = 1;
  while (across < cuda::kWarp && across * V < told.width) across *= 2;
  told.tiles = cuda::divide_up(told.width, across * V);
  const dim3 grid(static_cast<unsigned>(told.batch * told.tiles), static_cast<unsigned>(told.members.count));
  const dim3 block(static_cast<unsigned>(across), static_cast<unsigned>(cuda::kThreads / across));
  modulate_backward_kernel<T, V><<<grid, block, 0, stream>>>(told);
  return cuda::launched();
}

template <class T>
int modulate(const cuda::Call& call, ModulateCall told) {
  told.members = call.members;
  told.x = call.in(0), told.scale = call.in(1), told.shift = call.in(2), told.y = call.out(0);
  const bool wide = told.width % cuda::kWide<T> == 0 && (told.x | told.scale | told.shift | told.y) % 16 == 0;
  return wide ? run_modulate<T, cuda::kWide<T>>(told, call.stream) : run_modulate<T, 1>(told, call.stream);
}

template <class T>
int modulate_backward(const cuda::Call& call, ModulateBackwardCall told) {
  told.members = call.members;
  told.x = call.in(0), told.scale = call.in(1), told.dy = call.in(2);
  told.dx = call.out(0), told.dscale = call.out(1), told.dshift = call.out(2);
  // Four of narrow elements too, so that more threads share the positions of few channels.
  constexpr int kSome = 4;
  const bool wide = told.width % kSome == 0 &&
                    cuda::aligned(kSome * sizeof(T), {told.x, told.scale, told.dy, told.dx, told.dscale, told.dshift});
  return wide ? run_modulate_backward<T, kSome>(told, call.stream) : run_modulate_backward<T, 1>(told, call.stream);
}

}  // namespace

cuda::Program cuda_kernel(const Modulate&, Types in, Types) {
  const Shape& x = in[0].shape;
  const ModulateCall shape{.batch = x[0], .positions = x.rows() / x[0], .width = x.channels()};
  return {.launch = [shape, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
    return narrow ? modulate<__nv_bfloat16>(call, shape) : modulate<float>(call, shape);
  }};
}

cuda::Program cuda_kernel(const ModulateBackward&, Types in, Types) {
  const Shape& x = in[0].shape;
  const ModulateBackwardCall shape{.batch = x[0], .positions = x.rows() / x[0], .width = x.channels()};
  return {.launch = [shape, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
    return narrow ? modulate_backward<__nv_bfloat16>(call, shape) : modulate_backward<float>(call, shape);
  }};
}

}  // namespace norma
