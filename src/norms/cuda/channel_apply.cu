#include "norms/cuda/channel_apply.h"

#include "device/cuda/device.cuh"

namespace norma {
namespace {

// The thread's V elements of x, and of the lines.
template <int V>
struct ChannelPlace {
  std::int64_t x, line;
  bool has;

  template <typename CallType>
  __device__ __forceinline__ explicit ChannelPlace(const CallType& call) {
    x = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
    const std::int64_t row = cuda::quotient(x, call.channels), sample = cuda::quotient(row, call.positions);
    line = sample * call.channels + (x - row * call.channels);
    has = sample < call.samples;
  }
};

template <int V>
__device__ __forceinline__ void load_at(std::byte* member, std::int64_t tensor, std::int64_t index, float (&v)[V]) {
  cuda::load<float, V>(cuda::at<const float>(member, tensor) + index, v);
}

template <int V>
__global__ void __launch_bounds__(cuda::kThreads) channel_apply_kernel(const __grid_constant__ ChannelApplyCall call) {
  const ChannelPlace<V> place(call);
  if (cuda::skipped(call.members, blockIdx.y) || !place.has) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  float x[V], center[V], scale[V], shift[V];
  load_at<V>(member, call.x, place.x, x);
  load_at<V>(member, call.center, place.line, center);
  load_at<V>(member, call.scale, place.line, scale);
  load_at<V>(member, call.shift, place.line, shift);
#pragma unroll
  for (int j = 0; j < V; ++j) x[j] = fmaf(x[j] - center[j], scale[j], shift[j]);
  cuda::store<float, V>(cuda::at<float>(member, call.y) + place.x, x);
}

template <int V>
__global__ void __launch_bounds__(cuda::kThreads) channel_pull_kernel(const __grid_constant__ ChannelPullCall call) {
  const ChannelPlace<V> place(call);
  if (cuda::skipped(call.members, blockIdx.y) || !place.has) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  float x[V], dy[V], center[V], scale[V], shift[V], pull[V];
  load_at<V>(member, call.x, place.x, x);
  load_at<V>(member, call.dy, place.x, dy);
  load_at<V>(member, call.center, place.line, center);
  load_at<V>(member, call.scale, place.line, scale);
  load_at<V>(member, call.shift, place.line, shift);
  load_at<V>(member, call.pull, place.line, pull);
#pragma unroll
  for (int j = 0; j < V; ++j) dy[j] = fmaf(-(x[j] - center[j]), pull[j], fmaf(dy[j], scale[j], -shift[j]));
  cuda::store<float, V>(cuda::at<float>(member, call.dx) + place.x, dy);
}

template <typename CallType>
dim3 channel_grid(const CallType& call, int v) {
  return dim3(cuda::blocks_for(call.samples * call.positions * call.channels, cuda::kThreads * v),
              static_cast<unsigned>(call.members.count));
}

}  // namespace

// Lines lie in scratch: aligned.
int channel_apply(const ChannelApplyCall& call, cuda::Stream stream) {
  if ((call.x | call.y) % 16 == 0 && call.channels % 4 == 0) {
    channel_apply_kernel<4><<<channel_grid(call, 4), cuda::kThreads, 0, stream>>>(call);
  } else {
    channel_apply_kernel<1><<<channel_grid(call, 1), cuda::kThreads, 0, stream>>>(call);
  }
  return cuda::launched();
}

int channel_pull(const ChannelPullCall& call, cuda::Stream stream) {
  if ((call.x | call.dy | call.dx) % 16 == 0 && call.channels % 4 == 0) {
    channel_pull_kernel<4><<<channel_grid(call, 4), cuda::kThreads, 0, stream>>>(call);
  } else {
    channel_pull_kernel<1><<<channel_grid(call, 1), cuda::kThreads, 0, stream>>>(call);
  }
  return cuda::launched();
}

}  // namespace norma
