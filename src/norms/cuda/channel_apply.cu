#include "norms/cuda/channel_apply.h"

#include "norms/cuda/channel_lines.cuh"

namespace norma {
namespace {

// The thread's V elements of x, and of the lines.
template <int V>
struct ChannelPlace {
  std::int64_t x, line, channel;
  bool has;

  template <typename CallType>
  __device__ __forceinline__ explicit ChannelPlace(const CallType& call) {
    x = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
    const std::int64_t row = cuda::quotient(x, call.channels), sample = cuda::quotient(row, call.positions);
    channel = x - row * call.channels;
    line = sample * call.channels + channel;
    has = sample < call.samples;
  }
};

template <class T, int V>
__device__ __forceinline__ void load_at(std::byte* member, std::int64_t tensor, std::int64_t index, float (&v)[V]) {
  cuda::load<T, V>(cuda::at<const T>(member, tensor) + index, v);
}

// Lines are f32: eight of them are two accesses.
template <int V>
__device__ __forceinline__ void load_line(std::byte* member, std::int64_t tensor, std::int64_t index, float (&v)[V]) {
  const float* const line = cuda::at<const float>(member, tensor) + index;
  constexpr int kPart = V < 4 ? V : 4;
#pragma unroll
  for (int j = 0; j < V; j += kPart) {
    float some[kPart];
    cuda::load<float, kPart>(line + j, some);
#pragma unroll
    for (int i = 0; i < kPart; ++i) v[j + i] = some[i];
  }
}

template <class X, class Y, int V>
__global__ void __launch_bounds__(cuda::kThreads) channel_apply_kernel(const __grid_constant__ ChannelApplyCall call) {
  const ChannelPlace<V> place(call);
  if (cuda::skipped(call.members, blockIdx.y) || !place.has) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  float x[V], added[V] = {}, center[V], scale[V], shift[V];
  load_at<X, V>(member, call.x, place.x, x);
  if (call.added >= 0) load_at<Y, V>(member, call.added, place.x, added);
  load_line<V>(member, call.center, place.line, center);
  load_line<V>(member, call.scale, place.line, scale);
  load_line<V>(member, call.shift, place.line, shift);
#pragma unroll
  for (int j = 0; j < V; ++j) {
    x[j] = fmaf(x[j] - center[j], scale[j], shift[j]);
    if (call.added >= 0) x[j] += added[j];
    if (call.relu) x[j] = x[j] < 0.0f ? 0.0f : x[j];  // NaN stays
  }
  cuda::store<Y, V>(cuda::at<Y>(member, call.y) + place.x, x);
}

template <class X, class Y, int V>
__global__ void __launch_bounds__(cuda::kThreads) channel_pull_kernel(const __grid_constant__ ChannelPullCall call) {
  const ChannelPlace<V> place(call);
  if (cuda::skipped(call.members, blockIdx.y) || !place.has) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  float x[V], dy[V], center[V], scale[V], shift[V], pull[V];
  load_at<X, V>(member, call.x, place.x, x);
  load_at<Y, V>(member, call.dy, place.x, dy);
  load_line<V>(member, call.center, place.line, center);
  load_line<V>(member, call.scale, place.line, scale);
  load_line<V>(member, call.shift, place.line, shift);
  load_line<V>(member, call.pull, place.line, pull);
  if (call.relu) {
    float bias[V] = {};
    if (call.bias >= 0) load_line<V>(member, call.bias, place.channel, bias);
#pragma unroll
    for (int j = 0; j < V; ++j) dy[j] = cuda::through_relu(fmaf(x[j] - center[j], scale[j], bias[j]), dy[j]);
  }
#pragma unroll
  for (int j = 0; j < V; ++j) dy[j] = fmaf(-(x[j] - center[j]), pull[j], fmaf(dy[j], scale[j], -shift[j]));
  cuda::store<X, V>(cuda::at<X>(member, call.dx) + place.x, dy);
}

template <typename CallType>
dim3 channel_grid(const CallType& call, int v) {
  return dim3(cuda::blocks_for(call.samples * call.positions * call.channels, cuda::kThreads * v),
              static_cast<unsigned>(call.members.count));
}

// By the widths of x and y, and as many elements an access as channels and offsets allow. Lines lie in scratch:
// aligned.
template <class CallType, class Launch>
int by_width(const CallType& call, std::int64_t offsets, Launch&& launch) {
  constexpr int kNarrow = cuda::kWide<__nv_bfloat16>, kWide = cuda::kWide<float>;
  const auto fits = [&](int v) { return offsets % 16 == 0 && call.channels % v == 0; };
  if (call.narrow_x) {
    fits(kNarrow) ? launch.template operator()<__nv_bfloat16, __nv_bfloat16, kNarrow>()
                  : launch.template operator()<__nv_bfloat16, __nv_bfloat16, 1>();
  } else if (call.narrow_y) {
    fits(kWide) ? launch.template operator()<float, __nv_bfloat16, kWide>()
                : launch.template operator()<float, __nv_bfloat16, 1>();
  } else {
    fits(kWide) ? launch.template operator()<float, float, kWide>() : launch.template operator()<float, float, 1>();
  }
  return cuda::launched();
}

std::int64_t offset_bits(std::initializer_list<std::int64_t> offsets) {
  std::int64_t bits = 0;
  for (const std::int64_t offset : offsets) bits |= offset < 0 ? 0 : offset;
  return bits;
}

}  // namespace

int channel_apply(const ChannelApplyCall& call, cuda::Stream stream) {
  return by_width(call, offset_bits({call.x, call.y, call.added}), [&]<class X, class Y, int V>() {
    channel_apply_kernel<X, Y, V><<<channel_grid(call, V), cuda::kThreads, 0, stream>>>(call);
  });
}

int channel_pull(const ChannelPullCall& call, cuda::Stream stream) {
  return by_width(call, offset_bits({call.x, call.dy, call.dx, call.bias}), [&]<class X, class Y, int V>() {
    channel_pull_kernel<X, Y, V><<<channel_grid(call, V), cuda::kThreads, 0, stream>>>(call);
  });
}

}  // namespace norma
