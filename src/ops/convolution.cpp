// What convolutions are as ops: shapes, derivatives, references. convolution_cpu.cpp has their kernels.
#include "norma/ops/convolution.h"

#include "norma/core/error.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/views.h"
#include "ops/check.h"
#include "ops/convolution_sizes.h"

namespace norma {
namespace {

std::string attributes_of(const ConvolutionOptions& o) {
  return fmt::format("stride={} padding={} dilation={} groups={}", o.stride, o.padding, o.dilation, o.groups);
}

// Entries begin, begin + stride, ... of an axis, `count` of them.
Wire every(Wire x, int axis, std::int64_t begin, std::int64_t count, std::int64_t stride) {
  const std::int64_t span = (count - 1) * stride + 1;
  const Wire run = slice(x, axis, begin, span);
  if (stride == 1) return run;
  const Shape& s = x.shape();
  const Wire whole = pad(run, axis, 0, count * stride);
  const Shape split = axis == 1 ? Shape{s[0], count, stride, s[2], s[3]} : Shape{s[0], s[1], count, stride, s[3]};
  return reshape(slice(reshape(whole, split), axis + 1, 0, 1), s.with(axis, count));
}

Wire padded(Wire x, std::int64_t padding) {
  if (padding == 0) return x;
  const Shape& s = x.shape();
  return pad(pad(x, 1, padding, s[1] + 2 * padding), 2, padding, s[2] + 2 * padding);
}

// What one position of the kernel adds: its weight[in / groups, out] on x, group by group.
Wire tap(Wire x, Wire weight, std::int64_t groups) {
  if (groups == 1) return matmul_rows(x, weight);
  const std::int64_t in = weight.shape()[0], out = weight.shape()[1] / groups;
  if (in == 1 && out == 1) return x * reshape(weight, {groups});
  Wires parts;
  for (std::int64_t g = 0; g < groups; ++g)
    parts.push_back(matmul_rows(slice_last(x, g * in, in), slice_last(weight, g * out, out)));
  return concat_last(parts);
}

Cost convolution_cost(const ConvolutionSizes& s, std::span<const Type> in, std::span<const Type> out) {
  return {.flops = s.flops(), .bytes = traffic(in, out), .products = s.flops()};
}

}  // namespace

ConvolutionSizes::ConvolutionSizes(const ConvolutionOptions& o, const Shape& x, const Shape& weight) {
  if (x.rank() != 4) fail("needs images [batch, height, width, channels], but is given {}", x.str());
  if (weight.rank() != 4) fail("the weight must be [height, width, in / groups, out] but is {}", weight.str());
  if (o.stride < 1 || o.dilation < 1 || o.groups < 1 || o.padding < 0)
    fail("{}: expected stride, dilation and groups of at least 1 and padding of at least 0", attributes_of(o));
  if (x[3] % o.groups != 0 || weight[3] % o.groups != 0)
    fail("{} and {} channels do not divide into {} groups", x[3], weight[3], o.groups);
  if (weight[2] != x[3] / o.groups)
    fail("the weight {} reads {} channels a group but the image {} has {}", weight.str(), weight[2], x.str(),
         x[3] / o.groups);
  shape = {.batch = x[0],
           .height = x[1],
           .width = x[2],
           .in = x[3],
           .out = weight[3],
           .kernel_height = weight[0],
           .kernel_width = weight[1],
           .stride = o.stride,
           .padding = o.padding,
           .dilation = o.dilation,
           .groups = o.groups};
  const auto positions = [&](std::int64_t size, std::int64_t kernel) {
    const std::int64_t reach = (kernel - 1) * o.dilation + 1;
    if (size + 2 * o.padding < reach)
      fail("a kernel that reaches over {} positions does not fit into {} with padding {}", reach, size, o.padding);
    return (size + 2 * o.padding - reach) / o.stride + 1;
  };
  shape.out_height = positions(x[1], weight[0]);
  shape.out_width = positions(x[2], weight[1]);
}

double ConvolutionSizes::flops() const {
  const double outputs =
      static_cast<double>(shape.batch * shape.out_height) * static_cast<double>(shape.out_width * shape.out);
  return 2 * outputs * static_cast<double>(shape.kernel_height * shape.kernel_width * (shape.in / shape.groups));
}

std::string Conv2d::attributes() const { return attributes_of(options_); }

std::vector<Type> Conv2d::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  check_same_dtype(in[0], in[1]);
  return {{ConvolutionSizes(options_, in[0].shape, in[1].shape).y(), in[0].dtype}};
}

Wires Conv2d::vjp(const VjpContext& context) const {
  const Wire x = context.in[0], weight = context.in[1], dy = context.dout[0];
  Wires result(2);
  if (context.needed[0]) {
    const Wire in[] = {dy, weight};
    result[0] = context.graph().apply(std::make_shared<Conv2dData>(options_, x.shape()), in)[0];
  }
  if (context.needed[1]) {
    const Wire in[] = {x, dy};
    result[1] = context.graph().apply(std::make_shared<Conv2dWeights>(options_, weight.shape()), in)[0];
  }
  return result;
}

Wires Conv2d::reference(std::span<const Wire> in) const {
  const ConvolutionShape s = ConvolutionSizes(options_, in[0].shape(), in[1].shape()).shape;
  const Wire x = padded(in[0], s.padding);
  const std::int64_t inner = s.in / s.groups;
  const Wire taps = reshape(in[1], {s.kernel_height * s.kernel_width, inner * s.out});
  Wire sum;
  for (std::int64_t p = 0; p < s.kernel_height; ++p) {
    const Wire rows = every(x, 1, p * s.dilation, s.out_height, s.stride);
    for (std::int64_t q = 0; q < s.kernel_width; ++q) {
      const Wire seen = every(rows, 2, q * s.dilation, s.out_width, s.stride);
      const Wire weight = reshape(slice_rows(taps, p * s.kernel_width + q, 1), {inner, s.out});
      const Wire part = tap(seen, weight, s.groups);
      sum = sum ? sum + part : part;
    }
  }
  return {sum};
}

Cost Conv2d::cost(std::span<const Type> in, std::span<const Type> out) const {
  return convolution_cost({options_, in[0].shape, in[1].shape}, in, out);
}

std::string Conv2dData::attributes() const { return attributes_of(options_) + " x=" + x_.str(); }

std::vector<Type> Conv2dData::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  check_same_dtype(in[0], in[1]);
  check_type("dy", in[0], {ConvolutionSizes(options_, x_, in[1].shape).y(), in[0].dtype});
  return {{x_, in[0].dtype}};
}

Wires Conv2dData::vjp(const VjpContext& context) const {
  const Wire dy = context.in[0], weight = context.in[1], ddx = context.dout[0];
  Wires result(2);
  if (context.needed[0]) result[0] = conv2d(ddx, weight, options_);
  if (context.needed[1]) {
    const Wire in[] = {ddx, dy};
    result[1] = context.graph().apply(std::make_shared<Conv2dWeights>(options_, weight.shape()), in)[0];
  }
  return result;
}

// The derivative of the forward reference, where x counts for nothing: it is linear.
Wires Conv2dData::reference(std::span<const Wire> in) const {
  const Wire x = in[0].graph().fill({x_, in[0].dtype()}, 0), operands[] = {x, in[1]};
  const Wires y = Conv2d(options_).reference(operands), dy = {in[0]}, wrt = {x};
  return pull_back(y, dy, wrt);
}

Cost Conv2dData::cost(std::span<const Type> in, std::span<const Type> out) const {
  return convolution_cost({options_, x_, in[1].shape}, in, out);
}

std::string Conv2dWeights::attributes() const { return attributes_of(options_) + " weight=" + weight_.str(); }

std::vector<Type> Conv2dWeights::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  check_same_dtype(in[0], in[1]);
  check_type("dy", in[1], {ConvolutionSizes(options_, in[0].shape, weight_).y(), in[0].dtype});
  return {{weight_, in[0].dtype}};
}

Wires Conv2dWeights::vjp(const VjpContext& context) const {
  const Wire x = context.in[0], dy = context.in[1], ddw = context.dout[0];
  Wires result(2);
  if (context.needed[0]) {
    const Wire in[] = {dy, ddw};
    result[0] = context.graph().apply(std::make_shared<Conv2dData>(options_, x.shape()), in)[0];
  }
  if (context.needed[1]) result[1] = conv2d(x, ddw, options_);
  return result;
}

Wires Conv2dWeights::reference(std::span<const Wire> in) const {
  const Wire weight = in[0].graph().fill({weight_, in[0].dtype()}, 0), operands[] = {in[0], weight};
  const Wires y = Conv2d(options_).reference(operands), dy = {in[1]}, wrt = {weight};
  return pull_back(y, dy, wrt);
}

Cost Conv2dWeights::cost(std::span<const Type> in, std::span<const Type> out) const {
  return convolution_cost({options_, in[0].shape, weight_}, in, out);
}

Wire conv2d(Wire x, Wire weight, ConvolutionOptions options) {
  const Wire in[] = {x, weight};
  return x.graph().apply(std::make_shared<Conv2d>(options), in)[0];
}

Wire transposed_conv2d(Wire x, Wire weight, ConvolutionOptions options, std::int64_t output_padding) {
  const Shape &s = x.shape(), &w = weight.shape();
  const auto refuse = [](const std::string& why) { fail("transposed_conv2d {}", why); };
  if (s.rank() != 4) refuse(fmt::format("needs images [batch, height, width, channels], but is given {}", s.str()));
  if (w.rank() != 4 || w[3] != s[3])
    refuse(fmt::format("needs a weight [height, width, out / groups, {}] for images {}, but is given {}", s[3], s.str(),
                       w.str()));
  if (options.stride < 1 || options.dilation < 1 || options.groups < 1 || options.padding < 0)
    refuse(fmt::format("was given {}; expected stride, dilation and groups of at least 1 and padding of at least 0",
                       attributes_of(options)));
  if (output_padding < 0 || output_padding >= options.stride)
    refuse(fmt::format("was given an output padding of {}; expected 0 to {}, below the stride", output_padding,
                       options.stride - 1));
  const auto size = [&](std::int64_t positions, std::int64_t kernel) {
    const std::int64_t found =
        (positions - 1) * options.stride - 2 * options.padding + (kernel - 1) * options.dilation + 1 + output_padding;
    if (found < 1)
      refuse(fmt::format("of {} positions with a kernel of {} and padding {} has nothing left", positions, kernel,
                         options.padding));
    return found;
  };
  const Shape made{s[0], size(s[1], w[0]), size(s[2], w[1]), w[2] * options.groups};
  const Wire in[] = {x, weight};
  return x.graph().apply(std::make_shared<Conv2dData>(options, made), in)[0];
}

}  // namespace norma
