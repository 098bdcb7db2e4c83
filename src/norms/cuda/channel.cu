// Batch, instance and group norm: moments of every channel over parts of a sample's positions, merged in one order to
// those of the groups, then one pass that applies them. And the running statistics.
#include <algorithm>

#include "norma/norms/channel.h"
#include "norms/channel_layout.h"
#include "norms/cuda/channel_apply.h"
#include "norms/cuda/channel_lines.cuh"
#include "norms/cuda/lines.cuh"

namespace norma {
namespace {

struct ChannelCall {
  cuda::Members members = {};
  std::int64_t x = 0, eps = 0;
  std::int64_t running = cuda::kAbsent, running_variance = cuda::kAbsent;
  std::int64_t gain = cuda::kAbsent, bias = cuda::kAbsent;
  std::int64_t means = 0, squares = 0;            // scratch [lines, channels]: of the parts
  std::int64_t center = 0, scale = 0, shift = 0;  // scratch [samples, channels]
  std::int64_t out_rstd = cuda::kAbsent, out_mean = cuda::kAbsent, out_variance = cuda::kAbsent;
  std::int64_t groups = 0, width = 0;
  cuda::ChannelLines layout = {};
};

// Mean of the block's rows and squares around it, in one pass: sums of what is left after the block's first row has
// been taken off, which is as near to the mean as the channel is wide.
template <class T, int V>
__global__ void __launch_bounds__(cuda::kThreads) channel_moments_kernel(const __grid_constant__ ChannelCall call) {
  __shared__ float shared[cuda::kThreads * V];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const cuda::ChannelLinePlace place(call.layout);
  const std::int64_t channels = call.layout.width, end = place.has ? place.end : 0;
  const T* const x = cuda::at<const T>(member, call.x) + place.sample * call.layout.rows * channels + place.column;
  float first[V] = {}, sums[V] = {}, squares[V] = {};
  if (place.begin < end) cuda::load<T, V>(x + place.begin * channels, first);
#pragma unroll 4
  for (std::int64_t row = place.begin + threadIdx.y; row < end; row += blockDim.y) {
    float values[V];
    cuda::load<T, V>(x + row * channels, values);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float apart = values[j] - first[j];
      sums[j] += apart;
      squares[j] = fmaf(apart, apart, squares[j]);
    }
  }
  cuda::sum_down<V>(sums, shared);
  cuda::sum_down<V>(squares, shared);
  if (threadIdx.y != 0 || !place.has) return;
  const float rows = place.end > place.begin ? static_cast<float>(place.end - place.begin) : 1.0f;
#pragma unroll
  for (int j = 0; j < V; ++j) {
    const float mean = sums[j] / rows, around = fmaf(-mean, sums[j], squares[j]);
    const std::int64_t at = place.line * channels + place.column + j;
    cuda::at<float>(member, call.means)[at] = first[j] + mean;
    cuda::at<float>(member, call.squares)[at] = around < 0.0f ? 0.0f : around;
  }
}

// Chan, Golub, LeVeque 1979.
struct ChannelMoments {
  float count = 0.0f, mean = 0.0f, squares = 0.0f;

  __device__ __forceinline__ void merge(float other_count, float other_mean, float other_squares) {
    if (other_count == 0.0f) return;
    const float total = count + other_count, delta = other_mean - mean, share = other_count / total;
    mean = fmaf(delta, share, mean);
    squares += other_squares + delta * delta * count * share;
    count = total;
  }
};

// Of one group, in every lane of the warp: each lane merges its share of the group's channels and parts.
__device__ __forceinline__ ChannelMoments group_moments(const ChannelCall& call, std::byte* member, std::int64_t sample,
                                                        std::int64_t group) {
  const cuda::ChannelLines& layout = call.layout;
  const float* const means = cuda::at<const float>(member, call.means);
  const float* const squares = cuda::at<const float>(member, call.squares);
  ChannelMoments moments;
  constexpr int kAtOnce = 8;  // that are read before the first is merged
  const std::int64_t count = call.width * layout.parts;
  for (std::int64_t first = threadIdx.x % cuda::kWarp; first < count; first += kAtOnce * cuda::kWarp) {
    float rows[kAtOnce], mean[kAtOnce], around[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const std::int64_t i = first + j * cuda::kWarp, part = cuda::quotient(i < count ? i : first, call.width);
      const std::int64_t channel = group * call.width + ((i < count ? i : first) - part * call.width);
      const std::int64_t left = layout.rows - part * layout.rows_per_part;
      const std::int64_t at = (sample * layout.parts + part) * layout.width + channel;
      const std::int64_t there = left < layout.rows_per_part ? left : layout.rows_per_part;
      rows[j] = i < count && there > 0 ? static_cast<float>(there) : 0.0f;
      mean[j] = means[at];
      around[j] = squares[at];
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) moments.merge(rows[j], mean[j], around[j]);
  }
#pragma unroll
  for (int distance = cuda::kWarp / 2; distance > 0; distance >>= 1) {
    const float count = __shfl_down_sync(cuda::kAll, moments.count, distance);
    const float mean = __shfl_down_sync(cuda::kAll, moments.mean, distance);
    const float around = __shfl_down_sync(cuda::kAll, moments.squares, distance);
    moments.merge(count, mean, around);
  }
  moments.mean = __shfl_sync(cuda::kAll, moments.mean, 0);
  moments.squares = __shfl_sync(cuda::kAll, moments.squares, 0);
  return moments;
}

// A warp to a group of a sample: its statistics, and what they make of each of its channels.
__global__ void __launch_bounds__(cuda::kThreads) channel_finish_kernel(const __grid_constant__ ChannelCall call) {
  const std::int64_t statistic = cuda::Team<cuda::kWarp>::index(), sample = cuda::quotient(statistic, call.groups);
  if (cuda::skipped(call.members, blockIdx.y) || sample >= call.layout.samples) return;  // a whole warp
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t group = statistic - sample * call.groups;
  const int lane = cuda::Team<cuda::kWarp>::lane();
  float mean = 0.0f, variance = 0.0f;
  if (call.running >= 0) {
    mean = cuda::at<const float>(member, call.running)[group];
    variance = cuda::at<const float>(member, call.running_variance)[group];
  } else {
    const ChannelMoments moments = group_moments(call, member, sample, group);
    mean = moments.mean;
    variance = moments.squares / static_cast<float>(call.layout.rows * call.width);
  }
  const float rstd = 1.0f / sqrtf(variance + *cuda::at<const float>(member, call.eps));
  const auto tell = [&](std::int64_t out, float value) {
    if (lane == 0 && out >= 0) cuda::at<float>(member, out)[statistic] = value;
  };
  tell(call.out_rstd, rstd);
  tell(call.out_mean, mean);
  tell(call.out_variance, variance);
  const float* const gain = cuda::at<const float>(member, call.gain);
  const float* const bias = cuda::at<const float>(member, call.bias);
  for (std::int64_t i = lane; i < call.width; i += cuda::kWarp) {
    const std::int64_t channel = group * call.width + i, line = sample * call.layout.width + channel;
    cuda::at<float>(member, call.center)[line] = mean;
    cuda::at<float>(member, call.scale)[line] = gain == nullptr ? rstd : rstd * gain[channel];
    cuda::at<float>(member, call.shift)[line] = bias == nullptr ? 0.0f : bias[channel];
  }
}

template <class T>
int launch_moments(const ChannelCall& told, cuda::Stream stream) {
  const cuda::ChannelLines& layout = told.layout;
  if (layout.v == 1) {
    channel_moments_kernel<T, 1><<<layout.grid(told.members), layout.block(), 0, stream>>>(told);
  } else {
    channel_moments_kernel<T, cuda::kWide<T>><<<layout.grid(told.members), layout.block(), 0, stream>>>(told);
  }
  return cuda::launched();
}

// What is planned: two layouts, for tensors that whole accesses suit and for others.
struct ChannelNormShape {
  ChannelCall call = {};
  cuda::ChannelLines wide = {}, single = {};
  ChannelArguments arguments;
  bool narrow = false, narrow_out = false, relu = false;
};

int run_channel_norm(const cuda::Call& call, const ChannelNormShape& shape) {
  const ChannelArguments& arguments = shape.arguments;
  ChannelCall told = shape.call;
  told.layout = (call.in(0) | call.out(0)) % 16 == 0 ? shape.wide : shape.single;
  const cuda::ChannelLines& layout = told.layout;
  told.members = call.members;
  told.x = call.in(0);
  told.eps = call.in(1);
  if (arguments.running >= 0) told.running = call.in(arguments.running);
  if (arguments.running >= 0) told.running_variance = call.in(arguments.running + 1);
  if (arguments.gain >= 0) told.gain = call.in(arguments.gain);
  if (arguments.bias >= 0) told.bias = call.in(arguments.bias);
  told.out_rstd = call.out(1);
  if (arguments.running < 0) told.out_mean = call.out(2);
  if (arguments.running < 0) told.out_variance = call.out(3);
  for (std::int64_t* const room : {&told.means, &told.squares, &told.center, &told.scale, &told.shift}) {
    *room += call.scratch;
  }
  if (arguments.running < 0) {
    const int error =
        shape.narrow ? launch_moments<__nv_bfloat16>(told, call.stream) : launch_moments<float>(told, call.stream);
    if (error != 0) return error;
  }
  const dim3 grid(cuda::blocks_for(layout.samples * told.groups, cuda::Team<cuda::kWarp>::kPerBlock),
                  static_cast<unsigned>(call.members.count));
  channel_finish_kernel<<<grid, cuda::kThreads, 0, call.stream>>>(told);
  if (const int error = cuda::launched(); error != 0) return error;
  return channel_apply({.members = call.members,
                        .x = told.x,
                        .y = call.out(0),
                        .added = arguments.added < 0 ? cuda::kAbsent : call.in(arguments.added),
                        .center = told.center,
                        .scale = told.scale,
                        .shift = told.shift,
                        .samples = layout.samples,
                        .positions = layout.rows,
                        .channels = layout.width,
                        .narrow_x = shape.narrow,
                        .narrow_y = shape.narrow_out,
                        .relu = shape.relu},
                       call.stream);
}

struct RunningCall {
  cuda::Members members = {};
  std::int64_t old[2] = {}, batch[2] = {}, out[2] = {};
  std::int64_t momentum = 0, channels = 0;
  float unbiased = 1.0f;  // factor of the variance
};

// Block row 0: means; 1: variances.
__global__ void __launch_bounds__(cuda::kThreads) running_kernel(const __grid_constant__ RunningCall call) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x;
  if (cuda::skipped(call.members, blockIdx.z) || channel >= call.channels) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const int k = static_cast<int>(blockIdx.y);
  const float momentum = *cuda::at<const float>(member, call.momentum);
  const float old = cuda::at<const float>(member, call.old[k])[channel];
  const float batch = cuda::at<const float>(member, call.batch[k])[channel] * (k == 0 ? 1.0f : call.unbiased);
  cuda::at<float>(member, call.out[k])[channel] = isfinite(batch) ? (1.0f - momentum) * old + momentum * batch : old;
}

}  // namespace

cuda::Program cuda_kernel(const ChannelNorm& op, Types in, Types out) {
  const ChannelExtent extent(op.options(), in[0].shape);
  const bool narrow = in[0].dtype == DType::bf16;
  ChannelNormShape shape{.call = {.groups = extent.groups, .width = extent.width},
                         .wide = {extent.samples, extent.positions, extent.channels, narrow ? 8 : 4},
                         .single = {extent.samples, extent.positions, extent.channels, 1},
                         .arguments = ChannelArguments(op.options()),
                         .narrow = narrow,
                         .narrow_out = out[0].dtype == DType::bf16,
                         .relu = op.options().relu};
  cuda::ScratchRoom room;
  const std::int64_t lines = std::max(shape.wide.lines(), shape.single.lines());
  const std::int64_t parts = op.options().region == Region::running ? 0 : lines * extent.channels;
  shape.call.means = room.floats(parts);
  shape.call.squares = room.floats(parts);
  for (std::int64_t* const line : {&shape.call.center, &shape.call.scale, &shape.call.shift}) {
    *line = room.floats(extent.samples * extent.channels);
  }
  return {.launch = [shape](const cuda::Call& call) { return run_channel_norm(call, shape); },
          .scratch_bytes = room.bytes()};
}

cuda::Program cuda_kernel(const RunningUpdate& op, Types in, Types) {
  const std::int64_t channels = in[0].shape.elements();
  const float unbiased = static_cast<float>(op.rows()) / static_cast<float>(op.rows() - 1);
  return {.launch = [channels, unbiased](const cuda::Call& call) {
    const RunningCall told{.members = call.members,
                           .old = {call.in(0), call.in(1)},
                           .batch = {call.in(2), call.in(3)},
                           .out = {call.out(0), call.out(1)},
                           .momentum = call.in(4),
                           .channels = channels,
                           .unbiased = unbiased};
    const dim3 grid(cuda::blocks_for(channels, cuda::kThreads), 2, static_cast<unsigned>(call.members.count));
    running_kernel<<<grid, cuda::kThreads, 0, call.stream>>>(told);
    return cuda::launched();
  }};
}

}  // namespace norma
