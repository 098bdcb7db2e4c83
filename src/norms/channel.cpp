// What batch, instance and group norm are as ops: shapes, derivative, reference. channel_cpu.cpp has their kernels.
#include "norma/norms/channel.h"

#include "norma/core/error.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/graph.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "norms/channel_layout.h"
#include "ops/check.h"

namespace norma {
namespace {

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

std::string attributes_of(const ChannelNormOptions& options) {
  std::string text = fmt::format("region={} affine={}", name_of(options.region), name_of(options.affine));
  if (options.groups > 0) text += fmt::format(" groups={}", options.groups);
  if (options.adds) text += " adds";
  if (options.relu) text += " relu";
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
  const ChannelArguments arguments(options_);
  check_count(in.size(), static_cast<std::size_t>(arguments.count));
  const Type& x = in[0];
  check_input(options_, x);
  check_type("eps", in[1], {{1}, x.dtype});
  for (int k = 2; k < arguments.count && k != arguments.added; ++k) {
    check_type(k == arguments.gain   ? "gain"
               : k == arguments.bias ? "bias"
                                     : "running statistics",
               in[static_cast<std::size_t>(k)], {{x.shape.channels()}, x.dtype});
  }
  if (arguments.added >= 0) check_type("what is added", in.back(), x);
  const Type statistic{statistic_shape(options_, x.shape), x.dtype};
  if (options_.region == Region::running) return {x, statistic};
  return {x, statistic, statistic, statistic};
}

// x as it comes; a narrow one makes y narrow, statistics are wide.
void ChannelNorm::choose(Widths& widths) const {
  const bool x = widths.in[0], y = x || widths.out[0];
  widths.all(false);
  widths.in[0] = x;
  if (options_.adds) widths.in.back() = y;
  widths.out[0] = y;
}

Wires ChannelNorm::vjp(const VjpContext& context) const {
  const ChannelArguments arguments(options_);
  bool plain = !context.dout[1] && !context.needed[1] && !options_.adds && !options_.relu;
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
  const ChannelBackwardArguments backward(options_);
  result[0] = gradients[0];
  if (arguments.gain >= 0) result[static_cast<std::size_t>(arguments.gain)] = at(gradients, backward.dgain);
  if (arguments.bias >= 0) result[static_cast<std::size_t>(arguments.bias)] = at(gradients, backward.dbias);
  return result;
}

Wires ChannelNorm::reference(std::span<const Wire> in) const {
  const ChannelArguments arguments(options_);
  const Wire gain = at(in, arguments.gain), bias = at(in, arguments.bias);
  Wires out;
  if (arguments.running < 0) {
    out = normalise(options_, in[0], in[1], gain, bias);
  } else {
    const Wire rstd = rsqrt(in[3] + in[1]);
    Wire y = (in[0] - in[2]) * rstd;
    if (gain) y = y * gain;
    if (bias) y = y + bias;
    out = {y, rstd};
  }
  if (options_.adds) out[0] = out[0] + in.back();
  if (options_.relu) out[0] = activate(out[0], Activation::relu);
  return out;
}

Cost ChannelNorm::cost(std::span<const Type> in, std::span<const Type> out) const {
  const bool reads_twice = options_.region != Region::running;
  return {.flops = static_cast<double>(in[0].shape.elements()) * (reads_twice ? 7 : 3),
          .bytes = traffic(in, out) + (reads_twice ? static_cast<double>(in[0].bytes()) : 0)};
}

CpuKernel cpu_kernel(const ChannelNorm& op, Types in, Types) { return channel_norm_cpu(op.options(), in[0]); }

ChannelNormBackward::ChannelNormBackward(ChannelNormOptions options)
    : options_(options), name_(std::string(options.name) + "_backward") {}

std::string ChannelNormBackward::attributes() const { return attributes_of(options_); }

std::vector<Type> ChannelNormBackward::infer(std::span<const Type> in) const {
  const ChannelBackwardArguments arguments(options_);
  check_count(in.size(), static_cast<std::size_t>(arguments.count));
  const Type& x = in[0];
  check_input(options_, x);
  const Type statistic{statistic_shape(options_, x.shape), x.dtype}, channels{{x.shape.channels()}, x.dtype};
  check_type("dy", in[1], x);
  check_type("eps", in[2], {{1}, x.dtype});
  check_type("rstd", in[3], statistic);
  check_type("mean", in[4], statistic);
  if (arguments.gain >= 0) check_type("gain", in[5], channels);
  if (arguments.bias >= 0) check_type("bias", in.back(), channels);
  std::vector<Type> out = {x};
  if (arguments.dgain >= 0) out.push_back(channels);
  if (arguments.dbias >= 0) out.push_back(channels);
  return out;
}

// The gradient of x is as wide as x.
void ChannelNormBackward::choose(Widths& widths) const {
  const bool x = widths.in[0], dy = x || widths.in[1];
  widths.all(false);
  widths.in[0] = x;
  widths.in[1] = dy;
  widths.out[0] = x;
}

// The derivative of the forward reference; statistics are recomputed from x, so that second derivatives see them.
Wires ChannelNormBackward::reference(std::span<const Wire> in) const {
  const ChannelBackwardArguments arguments(options_);
  const Wire x = in[0], gain = at(in, arguments.gain);
  const Wire bias = arguments.dbias < 0   ? Wire()
                    : arguments.bias >= 0 ? at(in, arguments.bias)
                                          : x.graph().fill({{x.shape().channels()}, x.dtype()}, 0);
  Wire y;
  if (options_.region == Region::running) {
    y = (x - in[4]) * in[3];
    if (gain) y = y * gain;
    if (bias) y = y + bias;
  } else {
    y = normalise(options_, x, in[2], gain, bias)[0];
  }
  if (options_.relu) y = activate(y, Activation::relu);
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

CpuKernel cpu_kernel(const ChannelNormBackward& op, Types in, Types) {
  return channel_norm_backward_cpu(op.options(), in[0]);
}

}  // namespace norma
