// Batch, instance and group norm on the CPU, outside their inner loops.
// Forward: moments of each tile, merged in order, then one pass that applies them: 2 reads, 1 write.
// Backward: sums of dy and dy xh of each tile, added in order, then one pass for dx: 4 reads, 1 write.
#include <algorithm>
#include <cmath>

#include "norms/channel.h"
#include "norms/channel_layout.h"
#include "norms/partials.h"

namespace norma {
namespace {

// Blocks of one sample's positions.
struct SampleTiles {
  Tiling tiling;
  std::int64_t samples;

  SampleTiles(const ChannelExtent& extent)
      : tiling(extent.positions, std::max({std::int64_t{1}, 16384 / extent.channels,
                                           extent.positions * extent.samples / Tiling::kMaxTiles})),
        samples(extent.samples) {}
  std::int64_t count() const { return samples * tiling.tiles; }
  std::int64_t sample(std::int64_t tile) const { return tile / tiling.tiles; }
  std::int64_t block(std::int64_t tile) const { return tile % tiling.tiles; }
  std::int64_t rows(std::int64_t tile) const { return tiling.end(block(tile)) - tiling.begin(block(tile)); }
  std::int64_t first_row(std::int64_t tile) const { return sample(tile) * tiling.total + tiling.begin(block(tile)); }
};

// Statistics of each tile, then of each group, then the result of each tile. Where a tile is a whole sample, the three
// follow one another while the sample is in cache; else each is a phase of its own.
template <typename Take, typename Finish, typename Apply>
void add_phases(CpuKernel& kernel, const SampleTiles& tiles, const ChannelExtent& extent, Take take, Finish finish,
                Apply apply) {
  if (tiles.tiling.tiles == 1) {
    kernel.phases.push_back({tiles.count(), [=](const Call& call, std::int64_t sample) {
                               take(call, sample);
                               for (std::int64_t group = 0; group < extent.groups; ++group) finish(call, sample, group);
                               apply(call, sample);
                             }});
    return;
  }
  const Tiling groups(extent.samples * extent.groups, std::max<std::int64_t>(1, 256 / extent.width));
  kernel.phases.push_back({tiles.count(), take});
  kernel.phases.push_back({groups.tiles, [=](const Call& call, std::int64_t tile) {
                             for (std::int64_t i = groups.begin(tile); i < groups.end(tile); ++i) {
                               finish(call, i / extent.groups, i % extent.groups);
                             }
                           }});
  kernel.phases.push_back({tiles.count(), apply});
}

template <typename T>
T optional(const Call& call, int index, std::int64_t channel, T absent) {
  return index < 0 ? absent : call.in<T>(index)[channel];
}

// Moments of one group: its channels' tiles, merged in order.
template <typename T>
struct Moments {
  T count = 0, mean = 0, squares = 0;
  void merge(T other_count, T other_mean, T other_squares) {
    const T total = count + other_count, delta = other_mean - mean, share = other_count / total;
    mean += delta * share;
    squares += other_squares + delta * delta * count * share;
    count = total;
  }
};

template <typename T>
CpuKernel forward_kernel(const ChannelNormOptions& options, const Type& x) {
  const ChannelExtent extent(options, x.shape);
  const SampleTiles tiles(extent);
  const ChannelArguments arguments(options);
  const ChannelKernels<T> run = channel_kernels<T>();
  const Stores stores = choose_stores(x);
  const std::int64_t channels = extent.channels;
  CpuKernel kernel;
  const Partials<T> mean(kernel, channels, tiles.count()), squares(kernel, channels, tiles.count());
  const Partials<T> center(kernel, channels, extent.samples), scale(kernel, channels, extent.samples),
      shift(kernel, channels, extent.samples);
  kernel.worker_bytes = 2 * channel_line_stride<T>(channels) * static_cast<std::int64_t>(sizeof(T));
  const auto take_moments = [=, measured = options.region != Region::running](const Call& call, std::int64_t tile) {
    if (!measured) return;
    run.moments(call.in<T>(0) + tiles.first_row(tile) * channels, tiles.rows(tile), channels, mean.line(call, tile),
                squares.line(call, tile), call.worker<T>());
  };
  const auto finish_group = [=](const Call& call, std::int64_t sample, std::int64_t group) {
    const std::int64_t statistic = sample * extent.groups + group, begin = group * extent.width;
    Moments<T> moments;
    T variance;
    if (arguments.running >= 0) {
      moments.mean = call.in<T>(arguments.running)[group];
      variance = call.in<T>(arguments.running + 1)[group];
    } else {
      for (std::int64_t channel = begin; channel < begin + extent.width; ++channel) {
        for (std::int64_t block = 0; block < tiles.tiling.tiles; ++block) {
          const std::int64_t tile = sample * tiles.tiling.tiles + block;
          moments.merge(static_cast<T>(tiles.rows(tile)), mean.line(call, tile)[channel],
                        squares.line(call, tile)[channel]);
        }
      }
      variance = moments.squares / static_cast<T>(extent.elements());
      if (T* const out = call.out<T>(2)) out[statistic] = moments.mean;
      if (T* const out = call.out<T>(3)) out[statistic] = variance;
    }
    const T rstd = T{1} / std::sqrt(variance + call.in<T>(1)[0]);
    if (T* const out = call.out<T>(1)) out[statistic] = rstd;
    for (std::int64_t channel = begin; channel < begin + extent.width; ++channel) {
      center.line(call, sample)[channel] = moments.mean;
      scale.line(call, sample)[channel] = rstd * optional(call, arguments.gain, channel, T{1});
      shift.line(call, sample)[channel] = optional(call, arguments.bias, channel, T{0});
    }
  };
  const auto apply = [=](const Call& call, std::int64_t tile) {
    const std::int64_t first = tiles.first_row(tile) * channels, sample = tiles.sample(tile);
    run.apply(call.in<T>(0) + first, tiles.rows(tile), channels, center.line(call, sample), scale.line(call, sample),
              shift.line(call, sample), call.out<T>(0) + first, stores);
  };
  add_phases(kernel, tiles, extent, take_moments, finish_group, apply);
  return kernel;
}

template <typename T>
CpuKernel backward_kernel(const ChannelNormOptions& options, const Type& x) {
  const ChannelExtent extent(options, x.shape);
  const SampleTiles tiles(extent);
  const ChannelBackwardArguments arguments(options);
  const ChannelKernels<T> run = channel_kernels<T>();
  const Stores stores = choose_stores(x);
  const std::int64_t channels = extent.channels;
  CpuKernel kernel;
  const Partials<T> tile_dy(kernel, channels, tiles.count()), tile_dy_xh(kernel, channels, tiles.count());
  const Partials<T> sum_dy(kernel, channels, extent.samples), sum_dy_xh(kernel, channels, extent.samples);
  const Partials<T> center(kernel, channels, extent.samples), scale(kernel, channels, extent.samples),
      shift(kernel, channels, extent.samples), pull(kernel, channels, extent.samples);
  kernel.worker_bytes = 2 * channel_line_stride<T>(channels) * static_cast<std::int64_t>(sizeof(T));
  const auto take_sums = [=](const Call& call, std::int64_t tile) {
    T *const mean = call.worker<T>(), *const rstd = mean + channel_line_stride<T>(channels);
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      const std::int64_t s = tiles.sample(tile) * extent.groups + channel / extent.width;
      rstd[channel] = call.in<T>(3)[s];
      mean[channel] = call.in<T>(4)[s];
    }
    T *const dy = tile_dy.line(call, tile), *const dy_xh = tile_dy_xh.line(call, tile);
    std::fill_n(dy, channels, T{0});
    std::fill_n(dy_xh, channels, T{0});
    const std::int64_t first = tiles.first_row(tile) * channels;
    run.sums(call.in<T>(0) + first, call.in<T>(1) + first, tiles.rows(tile), channels, {mean, rstd}, dy, dy_xh);
  };
  const auto finish_group = [=](const Call& call, std::int64_t sample, std::int64_t group) {
    const std::int64_t statistic = sample * extent.groups + group, begin = group * extent.width;
    const T rstd = call.in<T>(3)[statistic], mean = call.in<T>(4)[statistic];
    T group_g = 0, group_g_xh = 0;
    for (std::int64_t channel = begin; channel < begin + extent.width; ++channel) {
      T dy = 0, dy_xh = 0;
      for (std::int64_t block = 0; block < tiles.tiling.tiles; ++block) {
        dy += tile_dy.line(call, sample * tiles.tiling.tiles + block)[channel];
        dy_xh += tile_dy_xh.line(call, sample * tiles.tiling.tiles + block)[channel];
      }
      sum_dy.line(call, sample)[channel] = dy;
      sum_dy_xh.line(call, sample)[channel] = dy_xh;
      const T gain = optional(call, arguments.gain, channel, T{1});
      group_g += gain * dy;
      group_g_xh += gain * dy_xh;
    }
    const bool follows = options.region != Region::running;  // whether mean and rstd depend on x
    const T elements = static_cast<T>(extent.elements());
    for (std::int64_t channel = begin; channel < begin + extent.width; ++channel) {
      center.line(call, sample)[channel] = mean;
      scale.line(call, sample)[channel] = rstd * optional(call, arguments.gain, channel, T{1});
      shift.line(call, sample)[channel] = follows ? rstd * (group_g / elements) : T{0};
      pull.line(call, sample)[channel] = follows ? rstd * rstd * (group_g_xh / elements) : T{0};
    }
  };
  const auto apply = [=](const Call& call, std::int64_t tile) {
    if (call.out<T>(0) == nullptr) return;
    const std::int64_t first = tiles.first_row(tile) * channels, sample = tiles.sample(tile);
    run.dx(call.in<T>(0) + first, call.in<T>(1) + first, tiles.rows(tile), channels, center.line(call, sample),
           scale.line(call, sample), shift.line(call, sample), pull.line(call, sample), call.out<T>(0) + first, stores);
  };
  add_phases(kernel, tiles, extent, take_sums, finish_group, apply);
  if (arguments.dgain >= 0) add_total_phase(kernel, sum_dy_xh, arguments.dgain);
  if (arguments.dbias >= 0) add_total_phase(kernel, sum_dy, arguments.dbias);
  return kernel;
}

}  // namespace

CpuKernel channel_norm_cpu(const ChannelNormOptions& options, const Type& x) {
  return x.dtype == DType::f32 ? forward_kernel<float>(options, x) : forward_kernel<double>(options, x);
}

CpuKernel channel_norm_backward_cpu(const ChannelNormOptions& options, const Type& x) {
  return x.dtype == DType::f32 ? backward_kernel<float>(options, x) : backward_kernel<double>(options, x);
}

}  // namespace norma
