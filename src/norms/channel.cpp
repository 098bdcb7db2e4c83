// What batch, instance and group norm share outside their inner loops: shapes, derivative, reference, tiles.
// Forward: moments of each tile, merged in order, then one pass that applies them: 2 reads, 1 write.
// Backward: sums of dy and dy xh of each tile, added in order, then one pass for dx: 4 reads, 1 write.
#include "norms/channel.h"

#include <algorithm>
#include <cmath>

#include "norma/core/error.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/graph.h"
#include "norma/norms/channel.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "norms/partials.h"
#include "ops/check.h"

namespace norma {
namespace {

// x as [samples, positions, groups, width].
struct ChannelExtent {
  std::int64_t samples, positions, channels, groups, width;

  ChannelExtent(const ChannelNormOptions& options, const Shape& x)
      : samples(options.region == Region::sample ? x[0] : 1),
        positions(x.rows() / samples),
        channels(x.channels()),
        groups(options.groups == 0 ? channels : options.groups),
        width(channels / groups) {}
  std::int64_t elements() const { return positions * width; }  // that one mean is taken over
};

Shape statistic_shape(const ChannelNormOptions& options, const Shape& x) {
  const ChannelExtent extent(options, x);
  return options.region == Region::sample ? Shape{extent.samples, extent.groups} : Shape{extent.channels};
}

void check_input(const ChannelNormOptions& options, const Type& x) {
  check_computes(x);
  const int rank = options.region == Region::sample ? 3 : 2;
  if (x.shape.rank() < rank) {
    fail("needs at least {} axes, {}, but is given {}", rank,
         rank == 3 ? "[samples, positions, channels]" : "[rows, channels]", x.str());
  }
  if (options.groups < 0 || (options.groups > 0 && x.shape.channels() % options.groups != 0)) {
    fail("{} channels do not divide into {} groups", x.shape.channels(), options.groups);
  }
}

// Positions of arguments, -1 = absent.
struct Arguments {
  int running = -1, gain = -1, bias = -1, count = 2;
  explicit Arguments(const ChannelNormOptions& options) {
    if (options.region == Region::running) running = std::exchange(count, count + 2);
    if (has_gain(options.affine)) gain = count++;
    if (has_bias(options.affine)) bias = count++;
  }
};
struct BackwardArguments {
  int gain = -1, count = 5, dgain = -1, dbias = -1;
  explicit BackwardArguments(const ChannelNormOptions& options) {
    int out = 1;
    if (has_gain(options.affine)) gain = count++;
    if (has_gain(options.affine)) dgain = out++;
    if (has_bias(options.affine)) dbias = out++;
  }
};

Wire at(std::span<const Wire> wires, int index) { return index < 0 ? Wire() : wires[static_cast<std::size_t>(index)]; }

// {y, rstd, mean, variance} in elementary ops.
Wires normalise(const ChannelNormOptions& options, Wire x, Wire eps, Wire gain, Wire bias) {
  const ChannelExtent extent(options, x.shape());
  const Shape shape{extent.samples, extent.positions, extent.groups, extent.width};
  const Shape one{extent.samples, 1, extent.groups, 1};
  const Wire grouped = reshape(x, shape);
  const double elements = static_cast<double>(extent.elements());
  const Wire mean = sum_to(grouped, one) / elements;
  const Wire variance = sum_to(square(grouped - mean), one) / elements;
  const Wire rstd = rsqrt(variance + eps);
  Wire y = reshape((grouped - mean) * rstd, x.shape());
  if (gain) y = y * gain;
  if (bias) y = y + bias;
  const Shape statistic = statistic_shape(options, x.shape());
  return {y, reshape(rstd, statistic), reshape(mean, statistic), reshape(variance, statistic)};
}

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
  const Arguments arguments(options);
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
  const BackwardArguments arguments(options);
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

std::string attributes_of(const ChannelNormOptions& options) {
  std::string text = fmt::format("region={} affine={}", name_of(options.region), name_of(options.affine));
  if (options.groups > 0) text += fmt::format(" groups={}", options.groups);
  return text;
}

}  // namespace

std::string_view name_of(Region region) {
  switch (region) {
    case Region::batch: return "batch";
    case Region::sample: return "sample";
    case Region::running: return "running";
  }
  return "region";
}

std::string ChannelNorm::attributes() const { return attributes_of(options_); }

std::vector<Type> ChannelNorm::infer(std::span<const Type> in) const {
  const Arguments arguments(options_);
  check_count(in.size(), static_cast<std::size_t>(arguments.count));
  const Type& x = in[0];
  check_input(options_, x);
  check_type("eps", in[1], {{1}, x.dtype});
  for (int k = 2; k < arguments.count; ++k) {
    check_type(k == arguments.gain   ? "gain"
               : k == arguments.bias ? "bias"
                                     : "running statistics",
               in[static_cast<std::size_t>(k)], {{x.shape.channels()}, x.dtype});
  }
  const Type statistic{statistic_shape(options_, x.shape), x.dtype};
  if (options_.region == Region::running) return {x, statistic};
  return {x, statistic, statistic, statistic};
}

Wires ChannelNorm::vjp(const VjpContext& context) const {
  const Arguments arguments(options_);
  bool plain = !context.dout[1] && !context.needed[1];
  for (std::size_t out = 2; out < context.dout.size(); ++out) plain = plain && !context.dout[out];
  if (arguments.running >= 0) {
    plain = plain && !context.needed[2] && !context.needed[3];
  }
  // Whoever differentiates through the statistics, or by eps, gets the derivative of the reference.
  if (!plain) return Op::vjp(context);
  Wires result(context.in.size());
  if (!context.dout[0]) return result;
  const Wire mean = arguments.running < 0 ? context.out[2] : context.in[2];
  Wires in = {context.in[0], context.dout[0], context.in[1], context.out[1], mean};
  if (arguments.gain >= 0) in.push_back(at(context.in, arguments.gain));
  const Wires gradients = context.graph().apply(std::make_shared<ChannelNormBackward>(options_), in);
  const BackwardArguments backward(options_);
  result[0] = gradients[0];
  if (arguments.gain >= 0) result[static_cast<std::size_t>(arguments.gain)] = at(gradients, backward.dgain);
  if (arguments.bias >= 0) result[static_cast<std::size_t>(arguments.bias)] = at(gradients, backward.dbias);
  return result;
}

Wires ChannelNorm::reference(std::span<const Wire> in) const {
  const Arguments arguments(options_);
  const Wire gain = at(in, arguments.gain), bias = at(in, arguments.bias);
  if (arguments.running < 0) return normalise(options_, in[0], in[1], gain, bias);
  const Wire rstd = rsqrt(in[3] + in[1]);
  Wire y = (in[0] - in[2]) * rstd;
  if (gain) y = y * gain;
  if (bias) y = y + bias;
  return {y, rstd};
}

Cost ChannelNorm::cost(std::span<const Type> in, std::span<const Type> out) const {
  const bool reads_twice = options_.region != Region::running;
  return {.flops = static_cast<double>(in[0].shape.elements()) * (reads_twice ? 7 : 3),
          .bytes = traffic(in, out) + (reads_twice ? static_cast<double>(in[0].bytes()) : 0)};
}

CpuKernel ChannelNorm::cpu(std::span<const Type> in, std::span<const Type>) const {
  return in[0].dtype == DType::f32 ? forward_kernel<float>(options_, in[0]) : forward_kernel<double>(options_, in[0]);
}

ChannelNormBackward::ChannelNormBackward(ChannelNormOptions options)
    : options_(options), name_(std::string(options.name) + "_backward") {}

std::string ChannelNormBackward::attributes() const { return attributes_of(options_); }

std::vector<Type> ChannelNormBackward::infer(std::span<const Type> in) const {
  const BackwardArguments arguments(options_);
  check_count(in.size(), static_cast<std::size_t>(arguments.count));
  const Type& x = in[0];
  check_input(options_, x);
  const Type statistic{statistic_shape(options_, x.shape), x.dtype}, channels{{x.shape.channels()}, x.dtype};
  check_type("dy", in[1], x);
  check_type("eps", in[2], {{1}, x.dtype});
  check_type("rstd", in[3], statistic);
  check_type("mean", in[4], statistic);
  if (arguments.gain >= 0) check_type("gain", in[5], channels);
  std::vector<Type> out = {x};
  if (arguments.dgain >= 0) out.push_back(channels);
  if (arguments.dbias >= 0) out.push_back(channels);
  return out;
}

// The derivative of the forward reference; statistics are recomputed from x, so that second derivatives see them.
Wires ChannelNormBackward::reference(std::span<const Wire> in) const {
  const BackwardArguments arguments(options_);
  const Wire x = in[0], gain = at(in, arguments.gain);
  const Wire bias = arguments.dbias < 0 ? Wire() : x.graph().fill({{x.shape().channels()}, x.dtype()}, 0);
  Wire y;
  if (options_.region == Region::running) {
    y = (x - in[4]) * in[3];
    if (gain) y = y * gain;
    if (bias) y = y + bias;
  } else {
    y = normalise(options_, x, in[2], gain, bias)[0];
  }
  Wires wrt = {x};
  if (gain) wrt.push_back(gain);
  if (bias) wrt.push_back(bias);
  const Wires out = {y}, dout = {in[1]};
  return pull_back(out, dout, wrt);
}

Cost ChannelNormBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in[0].shape.elements()) * 10,
          .bytes = traffic(in, out) + 2 * static_cast<double>(in[0].bytes())};
}

CpuKernel ChannelNormBackward::cpu(std::span<const Type> in, std::span<const Type>) const {
  return in[0].dtype == DType::f32 ? backward_kernel<float>(options_, in[0]) : backward_kernel<double>(options_, in[0]);
}

}  // namespace norma
