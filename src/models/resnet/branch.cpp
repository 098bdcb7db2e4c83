#include "models/resnet/branch.h"

#include <cmath>

#include "models/options.h"
#include "norma/core/error.h"
#include "norma/models/stack.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

// Streams are [batch, pixels, channels].
Wire as_image(Wire x, std::int64_t height, std::int64_t width) {
  return reshape(x, {x.shape()[0], height, width, x.shape().channels()});
}

Wire as_stream(Wire image) {
  const Shape& s = image.shape();
  return reshape(image, {s[0], s[1] * s[2], s[3]});
}

Wire image_of(const BranchCall& call, const ImageLayer& layer) {
  const Shape& s = call.in.shape();
  if (s.rank() != 3 || s[1] != layer.height * layer.width || s[2] != layer.in)
    fail("layer {} reads images {} x {} of {} channels, but was given {}", call.layer, layer.height, layer.width,
         layer.in, s.str());
  return as_image(call.in, layer.height, layer.width);
}

Activation activation_of(const BranchCall& call) {
  const std::string given = call.options.text("activation");
  return given.empty() ? call.stack.activation : parse_activation(given);
}

Wire build_convolutions(const BranchCall& call, const ImageLayer& layer, std::int64_t expansion) {
  if (call.style.unit) throw NotBuiltError("convolutions have no weights of unit length");
  const std::string inner = call.options.text("inner");
  // A norm that follows has a bias of its own.
  const bool bias = call.style.biases && inner.empty();
  const Activation activation = activation_of(call);
  const auto between = [&](Wire image, const char* site) {
    Wire x = as_stream(image);
    if (!inner.empty()) x = call.norm(inner, site, x);
    return as_image(activate(x, activation), image.shape()[1], image.shape()[2]);
  };
  const bool bottleneck = expansion > 1;
  Wire x = convolve(call.parameters, image_of(call, layer),
                    {.scope = "in",
                     .role = "conv",
                     .kernel = bottleneck ? 1 : 3,
                     .out = layer.inner,
                     .stride = bottleneck ? 1 : layer.stride,
                     .bias = bias},
                    call.rules);
  x = between(x, "inner_norm");
  if (bottleneck) {
    x = convolve(call.parameters, x,
                 {.scope = "middle", .role = "conv", .out = layer.inner, .stride = layer.stride, .bias = bias},
                 call.rules);
    x = between(x, "inner_norm2");
  }
  // A rule for the deviation of output projections holds for the last weight of any branch.
  const char* last = call.rules.init.deviation.contains("out") ? "out" : "conv_out";
  return as_stream(convolve(
      call.parameters, x, {.scope = "out", .role = last, .kernel = bottleneck ? 1 : 3, .out = layer.out, .bias = bias},
      call.rules));
}

// The stream as it is, or projected by a convolution of 1 x 1 and the norm that the scheme wants there.
Wire build_skip(const BranchCall& call, const ImageLayer& layer) {
  if (!layer.changes_shape()) return call.in;
  const Wire projected = as_stream(convolve(
      call.parameters, image_of(call, layer),
      {.scope = "skip", .role = "conv_skip", .kernel = 1, .out = layer.out, .stride = layer.stride}, call.rules));
  const std::string kind = call.options.text("skip");
  return kind.empty() ? projected : call.norm(kind, "skip_norm", projected);
}

}  // namespace

Wire convolve(Parameters& parameters, Wire x, const ConvolutionWeight& weight, const SchemeRules& rules) {
  const auto scope = parameters.graph().scope(weight.scope);
  const std::int64_t in = x.shape().channels(), k = weight.kernel;
  const double he = std::sqrt(2 / static_cast<double>(k * k * weight.out));
  const double deviation = rules.init.deviation_of(weight.role).value_or(he) * rules.init.gain_of(weight.role);
  ParameterSpec spec{.name = "weight", .init = Init::normal(deviation), .role = "conv"};
  rules.optimiser.apply(weight.role, spec);
  const Wire y =
      conv2d(x, parameters.share({k, k, in, weight.out}, spec), {.stride = weight.stride, .padding = (k - 1) / 2});
  if (!weight.bias) return y;
  ParameterSpec bias{.name = "bias", .init = Init::constant(0), .role = "bias"};
  rules.optimiser.apply("bias", bias);
  return y + parameters.share({weight.out}, bias);
}

LayerBranch convolution_layer_branch(const ImageLayout& layout) {
  const auto layer_of = [layers = layout.layers](const BranchCall& call) {
    return layers.at(static_cast<std::size_t>(call.layer));
  };
  return {.kind = &branch_kind("conv"),
          .build = [=, expansion = layout.expansion](
                       const BranchCall& call) { return build_convolutions(call, layer_of(call), expansion); },
          .skip = [=](const BranchCall& call) { return build_skip(call, layer_of(call)); }};
}

}  // namespace norma
