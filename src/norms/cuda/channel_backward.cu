// Gradients of batch, instance and group norm: sums of dy and dy xh of every channel over parts of a sample's
// positions, added in order, then those of the groups, then one pass for dx.
#include "norma/norms/channel.h"
#include "norms/channel_layout.h"
#include "norms/cuda/channel_apply.h"
#include "norms/cuda/lines.cuh"

namespace norma {
namespace {

struct ChannelBackwardCall {
  cuda::Members members = {};
  std::int64_t x = 0, dy = 0, rstd = 0, mean = 0;
  std::int64_t gain = cuda::kAbsent;
  std::int64_t part_dy = 0, part_dy_xh = 0;                 // scratch [lines, channels]
  std::int64_t sum_dy = 0, sum_dy_xh = 0;                   // scratch [samples, channels]
  std::int64_t center = 0, scale = 0, shift = 0, pull = 0;  // scratch [samples, channels]
  std::int64_t groups = 0, width = 0;
  bool follows = true;  // mean and rstd depend on x
  cuda::LineLayout layout = {};
};

__global__ void __launch_bounds__(cuda::kWarp* cuda::kLineRows)
    channel_sums_kernel(const __grid_constant__ ChannelBackwardCall call) {
  __shared__ float shared[cuda::kLineRows][cuda::kWarp];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const cuda::LinePlace place(call.layout);
  const std::int64_t channels = call.layout.width;
  const bool has = place.column < channels;
  float plain = 0.0f, weighted = 0.0f;
  if (has) {
    const std::int64_t statistic = place.sample * call.groups + cuda::quotient(place.column, call.width);
    const float mean = cuda::at<const float>(member, call.mean)[statistic];
    const std::int64_t first = place.sample * call.layout.rows * channels + place.column;
    const float* const x = cuda::at<const float>(member, call.x) + first;
    const float* const dy = cuda::at<const float>(member, call.dy) + first;
#pragma unroll 4
    for (std::int64_t row = place.begin + threadIdx.y; row < place.end; row += cuda::kLineRows) {
      const float here = dy[row * channels];
      plain += here;
      weighted = fmaf(here, x[row * channels] - mean, weighted);
    }
    weighted *= cuda::at<const float>(member, call.rstd)[statistic];
  }
  plain = cuda::sum_over_rows(plain, shared);
  weighted = cuda::sum_over_rows(weighted, shared);
  if (threadIdx.y != 0 || !has) return;
  cuda::at<float>(member, call.part_dy)[place.line * channels + place.column] = plain;
  cuda::at<float>(member, call.part_dy_xh)[place.line * channels + place.column] = weighted;
}

// A warp to a group of a sample.
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
  const float elements = static_cast<float>(call.layout.rows * call.width);
  const float rstd = cuda::at<const float>(member, call.rstd)[statistic];
  const float mean = cuda::at<const float>(member, call.mean)[statistic];
  for (std::int64_t i = lane; i < call.width; i += cuda::kWarp) {
    cuda::at<float>(member, call.center)[line + i] = mean;
    cuda::at<float>(member, call.scale)[line + i] = gain == nullptr ? rstd : rstd * gain[channel + i];
    cuda::at<float>(member, call.shift)[line + i] = call.follows ? rstd * (plain / elements) : 0.0f;
    cuda::at<float>(member, call.pull)[line + i] = call.follows ? rstd * rstd * (weighted / elements) : 0.0f;
  }
}

// sum[batch][channel] of lines [batch, lines, channels]
int fold_channels(const cuda::Call& call, std::int64_t from, std::int64_t to, std::int64_t lines, std::int64_t channels,
                  std::int64_t batch) {
  return cuda::fold_lines(
      {.members = call.members, .from = from, .to = to, .lines = lines, .width = channels, .batch = batch},
      call.stream);
}

int write_dx(const cuda::Call& call, const ChannelBackwardCall& told) {
  if (call.out(0) < 0) return 0;
  const cuda::LineLayout& layout = told.layout;
  const dim3 grid(cuda::blocks_for(layout.samples * told.groups, cuda::Team<cuda::kWarp>::kPerBlock),
                  static_cast<unsigned>(call.members.count));
  channel_groups_kernel<<<grid, cuda::kThreads, 0, call.stream>>>(told);
  if (const int error = cuda::launched(); error != 0) return error;
  return channel_pull({call.members, told.x, told.dy, call.out(0), told.center, told.scale, told.shift, told.pull,
                       layout.samples, layout.rows, layout.width},
                      call.stream);
}

int run_channel_backward(const cuda::Call& call, ChannelBackwardCall told, const ChannelBackwardArguments& arguments) {
  const cuda::LineLayout& layout = told.layout;
  told.members = call.members;
  told.x = call.in(0);
  told.dy = call.in(1);
  told.rstd = call.in(3);
  told.mean = call.in(4);
  if (arguments.gain >= 0) told.gain = call.in(arguments.gain);
  for (std::int64_t* const room : {&told.part_dy, &told.part_dy_xh, &told.sum_dy, &told.sum_dy_xh, &told.center,
                                   &told.scale, &told.shift, &told.pull}) {
    *room += call.scratch;
  }
  channel_sums_kernel<<<layout.grid(call.members), cuda::LineLayout::block(), 0, call.stream>>>(told);
  int error = cuda::launched();
  const auto then = [&](auto step) {
    if (error == 0) error = step();
  };
  then([&] { return fold_channels(call, told.part_dy, told.sum_dy, layout.parts, layout.width, layout.samples); });
  then(
      [&] { return fold_channels(call, told.part_dy_xh, told.sum_dy_xh, layout.parts, layout.width, layout.samples); });
  const auto total = [&](int output, std::int64_t sums) {
    const std::int64_t to = output < 0 ? cuda::kAbsent : call.out(output);
    if (to >= 0) then([&] { return fold_channels(call, sums, to, layout.samples, layout.width, 1); });
  };
  total(arguments.dgain, told.sum_dy_xh);
  total(arguments.dbias, told.sum_dy);
  then([&] { return write_dx(call, told); });
  return error;
}

}  // namespace

cuda::Program cuda_kernel(const ChannelNormBackward& op, Types in, Types) {
  const ChannelExtent extent(op.options(), in[0].shape);
  ChannelBackwardCall shape{.groups = extent.groups,
                            .width = extent.width,
                            .follows = op.options().region != Region::running,
                            .layout = cuda::LineLayout(extent.samples, extent.positions, extent.channels)};
  cuda::ScratchRoom room;
  for (std::int64_t* const lines : {&shape.part_dy, &shape.part_dy_xh}) {
    *lines = room.floats(shape.layout.lines() * extent.channels);
  }
  for (std::int64_t* const lines :
       {&shape.sum_dy, &shape.sum_dy_xh, &shape.center, &shape.scale, &shape.shift, &shape.pull}) {
    *lines = room.floats(extent.samples * extent.channels);
  }
  return {.launch = [shape, arguments = ChannelBackwardArguments(op.options())](
                        const cuda::Call& call) { return run_channel_backward(call, shape, arguments); },
          .scratch_bytes = room.bytes()};
}

}  // namespace norma
