// Gradients of batch, instance and group norm: sums of dy and dy xh of every channel over parts of a sample's
// positions, added in order, then those of the groups, then one pass for dx.
#include <algorithm>

#include "norma/norms/channel.h"
#include "norms/channel_layout.h"
#include "norms/cuda/channel_apply.h"
#include "norms/cuda/channel_lines.cuh"
#include "norms/cuda/lines.cuh"

namespace norma {
namespace {

struct ChannelBackwardCall {
  cuda::Members members = {};
  std::int64_t x = 0, dy = 0, rstd = 0, mean = 0;
  std::int64_t gain = cuda::kAbsent, bias = cuda::kAbsent, dgain = cuda::kAbsent, dbias = cuda::kAbsent;
  std::int64_t part_dy = 0, part_dy_xh = 0;                 // scratch [lines, channels]
  std::int64_t sum_dy = 0, sum_dy_xh = 0;                   // scratch [samples, channels]
  std::int64_t center = 0, scale = 0, shift = 0, pull = 0;  // scratch [samples, channels]
  std::int64_t groups = 0, width = 0;
  bool follows = true;  // mean and rstd depend on x
  bool relu = false;    // behind the norm: applied again to find where it passes
  cuda::ChannelLines layout = {};
};

template <class X, class Y, int V>
__global__ void __launch_bounds__(cuda::kThreads, 3)
    channel_sums_kernel(const __grid_constant__ ChannelBackwardCall call) {
  __shared__ float shared[cuda::kThreads * V];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const cuda::ChannelLinePlace place(call.layout);
  const std::int64_t channels = call.layout.width;
  float plain[V] = {}, weighted[V] = {}, mean[V], scale[V], bias[V];
  const float* const rstd = cuda::at<const float>(member, call.rstd);
  const float *const gains = cuda::at<const float>(member, call.gain), *const biases =
                                                                           cuda::at<const float>(member, call.bias);
#pragma unroll
  for (int j = 0; j < V; ++j) {
    const std::int64_t channel = place.has ? place.column + j : 0;
    const std::int64_t statistic = place.sample * call.groups + cuda::quotient(channel, call.width);
    mean[j] = cuda::at<const float>(member, call.mean)[statistic];
    scale[j] = gains == nullptr ? rstd[statistic] : rstd[statistic] * gains[channel];
    bias[j] = biases == nullptr ? 0.0f : biases[channel];
  }
  const std::int64_t first = place.sample * call.layout.rows * channels + place.column;
  const std::int64_t from = first + (place.begin + threadIdx.y) * channels, step = blockDim.y * channels;
  const X* next_x = cuda::at<const X>(member, call.x) + from;
  const Y* next_dy = cuda::at<const Y>(member, call.dy) + from;
  const X* const end = cuda::at<const X>(member, call.x) + first + (place.has ? place.end : 0) * channels;
#pragma unroll 2
  for (; next_x < end; next_x += step, next_dy += step) {
    float x[V], dy[V];
    cuda::load<X, V>(next_x, x);
    cuda::load<Y, V>(next_dy, dy);
    if (call.relu) {
#pragma unroll
      for (int j = 0; j < V; ++j) dy[j] = cuda::through_relu(fmaf(x[j] - mean[j], scale[j], bias[j]), dy[j]);
    }
#pragma unroll
    for (int j = 0; j < V; ++j) {
      plain[j] += dy[j];
      weighted[j] = fmaf(dy[j], x[j] - mean[j], weighted[j]);
    }
  }
  cuda::sum_down<V>(plain, shared);
  cuda::sum_down<V>(weighted, shared);
  if (threadIdx.y != 0 || !place.has) return;
#pragma unroll
  for (int j = 0; j < V; ++j) {
    const std::int64_t channel = place.column + j, to = place.line * channels + channel;
    cuda::at<float>(member, call.part_dy)[to] = plain[j];
    cuda::at<float>(member, call.part_dy_xh)[to] =
        weighted[j] * rstd[place.sample * call.groups + cuda::quotient(channel, call.width)];
  }
}

// What dx needs of a channel, given the sums over its group of gain dy and gain dy xh.
__device__ __forceinline__ void tell_channel(const ChannelBackwardCall& call, std::byte* member, std::int64_t statistic,
                                             std::int64_t line, std::int64_t channel, float plain, float weighted) {
  const float elements = static_cast<float>(call.layout.rows * call.width);
  const float rstd = cuda::at<const float>(member, call.rstd)[statistic];
  const float* const gain = cuda::at<const float>(member, call.gain);
  cuda::at<float>(member, call.center)[line] = cuda::at<const float>(member, call.mean)[statistic];
  cuda::at<float>(member, call.scale)[line] = gain == nullptr ? rstd : rstd * gain[channel];
  cuda::at<float>(member, call.shift)[line] = call.follows ? rstd * (plain / elements) : 0.0f;
  cuda::at<float>(member, call.pull)[line] = call.follows ? rstd * rstd * (weighted / elements) : 0.0f;
}

constexpr int kFoldWarps = 16;

// Parts to samples. A block has kWarp channels of one sample. Where a channel is a group of its own all is known then,
// and with one sample the gradients of gain and bias are too.
__global__ void __launch_bounds__(cuda::kWarp* kFoldWarps)
    channel_fold_kernel(const __grid_constant__ ChannelBackwardCall call, const std::int64_t tiles) {
  __shared__ float shared[2][kFoldWarps][cuda::kWarp];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t sample = cuda::quotient(blockIdx.x, tiles), channels = call.layout.width;
  const std::int64_t channel = (blockIdx.x - sample * tiles) * cuda::kWarp + threadIdx.x;
  const std::int64_t from = sample * call.layout.parts * channels + channel;
  float plain = 0.0f, weighted = 0.0f;
  if (channel < channels) {
#pragma unroll 8
    for (std::int64_t part = threadIdx.y; part < call.layout.parts; part += kFoldWarps) {
      plain += cuda::at<const float>(member, call.part_dy)[from + part * channels];
      weighted += cuda::at<const float>(member, call.part_dy_xh)[from + part * channels];
    }
  }
  shared[0][threadIdx.y][threadIdx.x] = plain;
  shared[1][threadIdx.y][threadIdx.x] = weighted;
  __syncthreads();
  if (threadIdx.y != 0 || channel >= channels) return;
#pragma unroll
  for (int row = 1; row < kFoldWarps; ++row) {
    plain += shared[0][row][threadIdx.x];
    weighted += shared[1][row][threadIdx.x];
  }
  const std::int64_t line = sample * channels + channel;
  cuda::at<float>(member, call.sum_dy)[line] = plain;
  cuda::at<float>(member, call.sum_dy_xh)[line] = weighted;
  if (call.layout.samples == 1 && call.dbias >= 0) cuda::at<float>(member, call.dbias)[channel] = plain;
  if (call.layout.samples == 1 && call.dgain >= 0) cuda::at<float>(member, call.dgain)[channel] = weighted;
  if (call.width != 1) return;
  const float* const gain = cuda::at<const float>(member, call.gain);
  const float factor = gain == nullptr ? 1.0f : gain[channel];
  tell_channel(call, member, sample * call.groups + channel, line, channel, factor * plain, factor * weighted);
}

// A warp to a group of a sample, of several channels.
__global__ void __launch_bounds__(cuda::kThreads)
    channel_groups_kernel(const __grid_constant__ ChannelBackwardCall call) {
  const std::int64_t statistic = cuda::Team<cuda::kWarp>::index(), sample = cuda::quotient(statistic, call.groups);
  if (cuda::skipped(call.members, blockIdx.y) || sample >= call.layout.samples) return;  // a whole warp
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t channel = (statistic - sample * call.groups) * call.width;  // the first
  const std::int64_t line = sample * call.layout.width + channel;
  const int lane = cuda::Team<cuda::kWarp>::lane();
  const float* const gain = cuda::at<const float>(member, call.gain);
  const float* const dy = cuda::at<const float>(member, call.sum_dy) + line;
  const float* const dy_xh = cuda::at<const float>(member, call.sum_dy_xh) + line;
  float plain = 0.0f, weighted = 0.0f;
  for (std::int64_t i = lane; i < call.width; i += cuda::kWarp) {
    const float g = gain == nullptr ? 1.0f : gain[channel + i];
    plain = fmaf(g, dy[i], plain);
    weighted = fmaf(g, dy_xh[i], weighted);
  }
  plain = cuda::warp_sum(plain);
  weighted = cuda::warp_sum(weighted);
  for (std::int64_t i = lane; i < call.width; i += cuda::kWarp)
    tell_channel(call, member, statistic, line + i, channel + i, plain, weighted);
}

template <class X, class Y>
int launch_sums(const ChannelBackwardCall& told, cuda::Stream stream) {
  const cuda::ChannelLines& layout = told.layout;
  if (layout.v == 1) {
    channel_sums_kernel<X, Y, 1><<<layout.grid(told.members), layout.block(), 0, stream>>>(told);
  } else {
    channel_sums_kernel<X, Y, cuda::kWide<X>><<<layout.grid(told.members), layout.block(), 0, stream>>>(told);
  }
  return cuda::launched();
}

int launch_fold(const ChannelBackwardCall& told, cuda::Stream stream) {
  const std::int64_t tiles = cuda::divide_up(told.layout.width, cuda::kWarp);
  const dim3 grid(static_cast<unsigned>(tiles * told.layout.samples), static_cast<unsigned>(told.members.count));
  channel_fold_kernel<<<grid, dim3(cuda::kWarp, kFoldWarps), 0, stream>>>(told, tiles);
  return cuda::launched();
}

int launch_groups(const ChannelBackwardCall& told, cuda::Stream stream) {
  const dim3 grid(cuda::blocks_for(told.layout.samples * told.groups, cuda::Team<cuda::kWarp>::kPerBlock),
                  static_cast<unsigned>(told.members.count));
  channel_groups_kernel<<<grid, cuda::kThreads, 0, stream>>>(told);
  return cuda::launched();
}

struct ChannelBackwardShape {
  ChannelBackwardCall call = {};
  cuda::ChannelLines wide = {}, single = {};
  ChannelBackwardArguments arguments;
  bool narrow_x = false, narrow_y = false;
};

ChannelBackwardCall channel_backward_call(const cuda::Call& call, const ChannelBackwardShape& shape) {
  const ChannelBackwardArguments& arguments = shape.arguments;
  const auto out = [&](int index) { return index < 0 ? cuda::kAbsent : call.out(index); };
  ChannelBackwardCall told = shape.call;
  told.layout = (call.in(0) | call.in(1)) % 16 == 0 ? shape.wide : shape.single;
  told.members = call.members;
  told.x = call.in(0);
  told.dy = call.in(1);
  told.rstd = call.in(3);
  told.mean = call.in(4);
  if (arguments.gain >= 0) told.gain = call.in(arguments.gain);
  if (arguments.bias >= 0) told.bias = call.in(arguments.bias);
  told.dgain = out(arguments.dgain);
  told.dbias = out(arguments.dbias);
  for (std::int64_t* const room : {&told.part_dy, &told.part_dy_xh, &told.sum_dy, &told.sum_dy_xh, &told.center,
                                   &told.scale, &told.shift, &told.pull}) {
    *room += call.scratch;
  }
  return told;
}

int run_channel_backward(const cuda::Call& call, const ChannelBackwardShape& shape) {
  const ChannelBackwardCall told = channel_backward_call(call, shape);
  const cuda::ChannelLines& layout = told.layout;
  int error = shape.narrow_x   ? launch_sums<__nv_bfloat16, __nv_bfloat16>(told, call.stream)
              : shape.narrow_y ? launch_sums<float, __nv_bfloat16>(told, call.stream)
                               : launch_sums<float, float>(told, call.stream);
  const auto then = [&](auto step) {
    if (error == 0) error = step();
  };
  then([&] { return launch_fold(told, call.stream); });
  const auto total = [&](std::int64_t to, std::int64_t sums) {
    if (to < 0 || layout.samples == 1) return;
    then([&] {
      return cuda::fold_lines(
          {.members = call.members, .from = sums, .to = to, .lines = layout.samples, .width = layout.width},
          call.stream);
    });
  };
  total(told.dgain, told.sum_dy_xh);
  total(told.dbias, told.sum_dy);
  if (call.out(0) < 0) return error;
  if (told.width != 1) then([&] { return launch_groups(told, call.stream); });
  then([&] {
    return channel_pull({.members = call.members,
                         .x = told.x,
                         .dy = told.dy,
                         .dx = call.out(0),
                         .center = told.center,
                         .scale = told.scale,
                         .shift = told.shift,
                         .pull = told.pull,
                         .bias = told.bias,
                         .samples = layout.samples,
                         .positions = layout.rows,
                         .channels = layout.width,
                         .narrow_x = shape.narrow_x,
                         .narrow_y = shape.narrow_y,
                         .relu = told.relu},
                        call.stream);
  });
  return error;
}

}  // namespace

cuda::Program cuda_kernel(const ChannelNormBackward& op, Types in, Types) {
  const ChannelExtent extent(op.options(), in[0].shape);
  const bool narrow = in[0].dtype == DType::bf16;
  ChannelBackwardShape shape{.call = {.groups = extent.groups,
                                      .width = extent.width,
                                      .follows = op.options().region != Region::running,
                                      .relu = op.options().relu},
                             .wide = {extent.samples, extent.positions, extent.channels, narrow ? 8 : 4},
                             .single = {extent.samples, extent.positions, extent.channels, 1},
                             .arguments = ChannelBackwardArguments(op.options()),
                             .narrow_x = narrow,
                             .narrow_y = in[1].dtype == DType::bf16};
  cuda::ScratchRoom room;
  const std::int64_t lines = std::max(shape.wide.lines(), shape.single.lines());
  for (std::int64_t* const part : {&shape.call.part_dy, &shape.call.part_dy_xh}) {
    *part = room.floats(lines * extent.channels);
  }
  for (std::int64_t* const line : {&shape.call.sum_dy, &shape.call.sum_dy_xh, &shape.call.center, &shape.call.scale,
                                   &shape.call.shift, &shape.call.pull}) {
    *line = room.floats(extent.samples * extent.channels);
  }
  return {.launch = [shape](const cuda::Call& call) { return run_channel_backward(call, shape); },
          .scratch_bytes = room.bytes()};
}

}  // namespace norma
