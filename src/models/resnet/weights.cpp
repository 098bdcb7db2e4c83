#include "models/resnet/weights.h"

#include <cmath>

#include "norma/ops/convolution.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/pooling.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

// Padded by zeros to an even size; the mean over the last two then counts one of them, so it is doubled.
Wire halved_along(Wire image, int axis, Wire& factor) {
  const std::int64_t size = image.shape()[axis];
  if (size % 2 == 0) return image;
  Graph& graph = image.graph();
  const auto ones = [&](std::int64_t count, double value) {
    return graph.fill({axis == 1 ? Shape{1, count, 1, 1} : Shape{1, 1, count, 1}, image.dtype()}, value);
  };
  const Wire last = ones(1, 2), both[] = {ones(size / 2, 1), last};
  const Wire here = size == 1 ? last : concat(both, axis);
  factor = factor ? factor * here : here;
  return pad(image, axis, 0, size + 1);
}

}  // namespace

Wire as_image(Wire stream, std::int64_t height, std::int64_t width) {
  return reshape(stream, {stream.shape()[0], height, width, stream.shape().channels()});
}

Wire as_stream(Wire image) {
  const Shape& s = image.shape();
  return reshape(image, {s[0], s[1] * s[2], s[3]});
}

Wire convolve(Parameters& parameters, Wire x, const ConvolutionWeight& weight, const SchemeRules& rules) {
  const auto scope = parameters.graph().scope(weight.scope);
  const std::int64_t in = x.shape().channels() / weight.groups, k = weight.kernel;
  const bool patches = weight.reach == ConvolutionWeight::Reach::patches;
  const bool transposed = weight.reach == ConvolutionWeight::Reach::transposed;
  // Of a transposed kernel only every stride-th row and column reaches one position.
  const double positions = transposed ? static_cast<double>(k * k) / static_cast<double>(weight.stride * weight.stride)
                                      : static_cast<double>(k * k);
  const double usual = weight.start == ConvolutionWeight::Start::he
                           ? std::sqrt(2 / (positions * static_cast<double>(weight.out / weight.groups)))
                           : std::sqrt(1 / (positions * static_cast<double>(in)));
  const FormedStart start = formed_start(weight.form, k * k * in, usual, rules.init.deviation_of(weight.role),
                                         rules.init.gain_of(weight.role));
  ParameterSpec spec{.name = "weight", .init = Init::normal(start.weight), .role = "conv"};
  ParameterSpec gain{.name = {}, .init = Init::constant(start.gain), .role = "norm"};
  rules.optimiser.apply(weight.role, spec);
  rules.optimiser.apply("norm", gain);
  const std::int64_t out = weight.out / weight.groups;
  const Wire learned =
      parameters.share(transposed ? Shape{k, k, out, x.shape().channels()} : Shape{k, k, in, weight.out}, spec);
  const ConvolutionOptions options{
      .stride = weight.stride, .padding = patches ? 0 : (k - 1) / 2, .groups = weight.groups};
  const Wire made = transposed ? learned : formed(parameters, learned, weight.form, std::move(gain));
  const Wire y = transposed ? transposed_conv2d(x, made, options) : conv2d(x, made, options);
  if (!weight.bias) return y;
  ParameterSpec bias{.name = "bias", .init = Init::constant(0), .role = "bias"};
  rules.optimiser.apply("bias", bias);
  return y + parameters.share({weight.out}, bias);
}

Wire halved(Wire image) {
  Wire factor;
  const Wire even = halved_along(halved_along(image, 1, factor), 2, factor);
  const Wire means = average_pool(even, 2);
  return factor ? means * factor : means;
}

}  // namespace norma
