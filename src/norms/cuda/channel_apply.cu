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
  __device__ __forceinline__ ChannelPlace(const CallType& call, std::int64_t at) : x(at) {
    const std::int64_t row = cuda::quotient(x, call.channels), sample = cuda::quotient(row, call.positions);
    channel = x - row * call.channels;
    line = sample * call.channels + channel;
    has = sample < call.samples;
  }
};

// Blocks go from the last element, and the last member, to the first: what the pass before has read at its end is still
// in the second cache.
__device__ __forceinline__ unsigned member_of() { return gridDim.y - 1 - blockIdx.y; }

// A block has kTimes runs of kThreads * V elements. With kTimes > 1 runs are whole rows of one sample, so that a
// thread's channels are the same in all of them.
template <int kTimes, int V>
__device__ __forceinline__ std::int64_t run_start(int time) {
  const std::int64_t block = gridDim.x - 1 - blockIdx.x;
  return ((block * kTimes + time) * cuda::kThreads + threadIdx.x) * V;
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

template <class X, class Y, int V, int kTimes>
__global__ void __launch_bounds__(cuda::kThreads) channel_apply_kernel(const __grid_constant__ ChannelApplyCall call) {
  const ChannelPlace<V> place(call, run_start<kTimes, V>(0));
  if (cuda::skipped(call.members, member_of()) || !place.has) return;
  std::byte* const member = cuda::base_of(call.members, member_of());
  const std::int64_t elements = call.samples * call.positions * call.channels;
  cuda::Raw<X, V> x_raw[kTimes];
  cuda::Raw<Y, V> added_raw[kTimes];
#pragma unroll
  for (int time = 0; time < kTimes; ++time) {
    const std::int64_t at = run_start<kTimes, V>(time);
    if (at >= elements) continue;
    x_raw[time] = cuda::load_raw<X, V>(cuda::at<const X>(member, call.x) + at);
    if (call.added >= 0) added_raw[time] = cuda::load_raw<Y, V>(cuda::at<const Y>(member, call.added) + at);
  }
  float center[V], scale[V], shift[V];
  load_line<V>(member, call.center, place.line, center);
  load_line<V>(member, call.scale, place.line, scale);
  load_line<V>(member, call.shift, place.line, shift);
#pragma unroll
  for (int time = 0; time < kTimes; ++time) {
    const std::int64_t at = run_start<kTimes, V>(time);
    if (at >= elements) continue;
    float x[V], added[V] = {};
    cuda::unpack<X, V>(x_raw[time], x);
    if (call.added >= 0) cuda::unpack<Y, V>(added_raw[time], added);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      x[j] = fmaf(x[j] - center[j], scale[j], shift[j]);
      if (call.added >= 0) x[j] += added[j];
      if (call.relu) x[j] = x[j] < 0.0f ? 0.0f : x[j];  // NaN stays
    }
    cuda::store<Y, V>(cuda::at<Y>(member, call.y) + at, x);
  }
}

template <class X, class Y, int V, int kTimes>
__global__ void __launch_bounds__(cuda::kThreads) channel_pull_kernel(const __grid_constant__ ChannelPullCall call) {
  const ChannelPlace<V> place(call, run_start<kTimes, V>(0));
  if (cuda::skipped(call.members, member_of()) || !place.has) return;
  std::byte* const member = cuda::base_of(call.members, member_of());
  const std::int64_t elements = call.samples * call.positions * call.channels;
  cuda::Raw<X, V> x_raw[kTimes];
  cuda::Raw<Y, V> dy_raw[kTimes];
#pragma unroll
  for (int time = 0; time < kTimes; ++time) {
    const std::int64_t at = run_start<kTimes, V>(time);
    if (at >= elements) continue;
    x_raw[time] = cuda::load_raw<X, V>(cuda::at<const X>(member, call.x) + at);
    dy_raw[time] = cuda::load_raw<Y, V>(cuda::at<const Y>(member, call.dy) + at);
  }
  float center[V], scale[V], shift[V], pull[V], bias[V] = {};
  load_line<V>(member, call.center, place.line, center);
  load_line<V>(member, call.scale, place.line, scale);
  load_line<V>(member, call.shift, place.line, shift);
  load_line<V>(member, call.pull, place.line, pull);
  if (call.relu && call.bias >= 0) load_line<V>(member, call.bias, place.channel, bias);
#pragma unroll
  for (int time = 0; time < kTimes; ++time) {
    const std::int64_t at = run_start<kTimes, V>(time);
    if (at >= elements) continue;
    float x[V], dy[V];
    cuda::unpack<X, V>(x_raw[time], x);
    cuda::unpack<Y, V>(dy_raw[time], dy);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      x[j] -= center[j];
      if (call.relu) dy[j] = cuda::through_relu(fmaf(x[j], scale[j], bias[j]), dy[j]);
      dy[j] = fmaf(-x[j], pull[j], fmaf(dy[j], scale[j], -shift[j]));
    }
    cuda::store<X, V>(cuda::at<X>(member, call.dx) + at, dy);
  }
}

template <typename CallType>
dim3 channel_grid(const CallType& call, int elements_of_block) {
  return dim3(cuda::blocks_for(call.samples * call.positions * call.channels, elements_of_block),
              static_cast<unsigned>(call.members.count));
}

// Runs of whole rows of one sample, and blocks enough for the card.
template <typename CallType>
bool repeats(const CallType& call, int v) {
  constexpr int kTimes = 4, kFew = 512;
  const std::int64_t run = std::int64_t{cuda::kThreads} * v;
  return call.samples == 1 && run % call.channels == 0 && call.positions * call.channels >= run * kTimes * kFew;
}

// By the widths of x and y, and as many elements an access as channels and offsets allow. Lines lie in scratch:
// aligned.
template <class CallType, class Launch>
int by_width(const CallType& call, std::int64_t offsets, Launch&& launch) {
  constexpr int kNarrow = cuda::kWide<__nv_bfloat16>, kWide = cuda::kWide<float>;
  const auto fits = [&](int v) { return offsets % 16 == 0 && call.channels % v == 0; };
  const auto whole = [&]<class X, class Y, int V>() {
    if (!fits(V)) {
      launch.template operator()<X, Y, 1, 1>();
    } else if (repeats(call, V)) {
      launch.template operator()<X, Y, V, 4>();
    } else {
      launch.template operator()<X, Y, V, 1>();
    }
  };
  if (call.narrow_x) {
    whole.template operator()<__nv_bfloat16, __nv_bfloat16, kNarrow>();
  } else if (call.narrow_y) {
    whole.template operator()<float, __nv_bfloat16, kWide>();
  } else {
    whole.template operator()<float, float, kWide>();
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
  return by_width(call, offset_bits({call.x, call.y, call.added}), [&]<class X, class Y, int V, int kTimes>() {
    const dim3 grid = channel_grid(call, cuda::kThreads * V * kTimes);
    channel_apply_kernel<X, Y, V, kTimes><<<grid, cuda::kThreads, 0, stream>>>(call);
  });
}

int channel_pull(const ChannelPullCall& call, cuda::Stream stream) {
  return by_width(call, offset_bits({call.x, call.dy, call.dx, call.bias}), [&]<class X, class Y, int V, int kTimes>() {
    const dim3 grid = channel_grid(call, cuda::kThreads * V * kTimes);
    channel_pull_kernel<X, Y, V, kTimes><<<grid, cuda::kThreads, 0, stream>>>(call);
  });
}

}  // namespace norma
