#include "models/resnet/branch.h"

#include "models/options.h"
#include "models/resnet/weights.h"
#include "norma/core/error.h"
#include "norma/models/stack.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

// One block as a formula calls it.
class BlockBuilder {
 public:
  BlockBuilder(const BranchCall& call, const ImageLayout& layout)
      : call_(call),
        layout_(layout),
        layer_(layout.layers.at(static_cast<std::size_t>(call.layer))),
        inner_(call.options.text("inner")) {
    if (call.style.unit) throw NotBuiltError("convolutions have no weights of unit length");
  }

  Wire branch() const { return layout_.inverted ? inverted() : convolutions(); }

  // The stream as it is, or projected by a convolution of 1 x 1 and the norm that the scheme wants there.
  Wire skip() const {
    if (layout_.inverted || !layer_.changes_shape()) return call_.in;
    const bool of_branch = call_.options.text("skip_reads") == "branch" && call_.read;
    Wire x = image_of(of_branch ? call_.read : call_.in, layer_.height, layer_.width, layer_.in);
    std::int64_t stride = layer_.stride;
    if (stride > 1 && !call_.options.text("skip_pool").empty()) {
      x = halved(x);
      stride = 1;
    }
    const Wire projected =
        as_stream(made(x, {.scope = "skip", .role = "conv_skip", .kernel = 1, .out = layer_.out, .stride = stride}));
    const std::string kind = call_.options.text("skip");
    return kind.empty() ? projected : call_.norm(kind, "skip_norm", projected);
  }

  // Inverted blocks read a stream that has their shape already: a norm, and a convolution of 2 x 2 that halves it.
  Wire enter() const {
    if (!layout_.inverted || !layer_.changes_shape()) return call_.in;
    const std::string kind = call_.options.text("skip");
    const Wire x = kind.empty() ? call_.in : call_.norm(kind, "skip_norm", call_.in);
    Wire image = image_of(x, layer_.height, layer_.width, layer_.in);
    for (const int axis : {1, 2}) {
      if (image.shape()[axis] % layer_.stride != 0) image = pad(image, axis, 0, image.shape()[axis] + 1);
    }
    return as_stream(made(image, {.scope = "skip",
                                  .role = "conv_skip",
                                  .kernel = layer_.stride,
                                  .out = layer_.out,
                                  .stride = layer_.stride,
                                  .reach = ConvolutionWeight::Reach::patches,
                                  .bias = call_.style.biases}));
  }

 private:
  Wire image_of(Wire x, std::int64_t height, std::int64_t width, std::int64_t channels) const {
    const Shape& s = x.shape();
    if (s.rank() != 3 || s[1] != height * width || s[2] != channels)
      fail("layer {} reads images {} x {} of {} channels, but was given {}", call_.layer, height, width, channels,
           s.str());
    return as_image(x, height, width);
  }

  Wire made(Wire x, ConvolutionWeight weight) const {
    weight.form = call_.style.form;
    return convolve(call_.parameters, x, weight, call_.rules);
  }

  Wire activated(Wire x) const {
    const std::string given = call_.options.text("activation");
    const Wire y = activate(x, given.empty() ? call_.stack.activation : parse_activation(given));
    const std::optional<double> gain = call_.options.number("activation_gain");
    return gain ? y * *gain : y;
  }

  // The inner norm, where there is one, and the activation.
  Wire between(Wire image, const char* site) const {
    Wire x = as_stream(image);
    if (!inner_.empty()) x = call_.norm(inner_, site, x);
    return as_image(activated(x), image.shape()[1], image.shape()[2]);
  }

  // A rule for the deviation of output projections holds for the last weight of any branch.
  const char* last_role() const { return call_.rules.init.deviation.contains("out") ? "out" : "conv_out"; }

  Wire convolutions() const {
    const bool bottleneck = layout_.expansion > 1;
    const bool bias = call_.style.biases && inner_.empty();  // a norm that follows has one of its own
    Wire x =
        made(image_of(call_.in, layer_.height, layer_.width, layer_.in), {.scope = "in",
                                                                          .role = "conv",
                                                                          .kernel = bottleneck ? 1 : layout_.kernel,
                                                                          .out = layer_.inner,
                                                                          .stride = bottleneck ? 1 : layer_.stride,
                                                                          .bias = bias});
    x = between(x, "inner_norm");
    if (bottleneck) {
      x = made(x, {.scope = "middle",
                   .role = "conv",
                   .kernel = layout_.kernel,
                   .out = layer_.inner,
                   .stride = layer_.stride,
                   .bias = bias});
      x = between(x, "inner_norm2");
    }
    return as_stream(made(x, {.scope = "out",
                              .role = last_role(),
                              .kernel = bottleneck ? 1 : layout_.kernel,
                              .out = layer_.out,
                              .bias = bias}));
  }

  Wire inverted() const {
    const std::int64_t height = layer_.out_height(), width = layer_.out_width(), channels = layer_.out;
    const bool bias = call_.style.biases;
    Wire x = made(image_of(call_.in, height, width, channels), {.scope = "depthwise",
                                                                .role = "conv",
                                                                .kernel = layout_.kernel,
                                                                .out = channels,
                                                                .groups = channels,
                                                                .bias = bias && inner_.empty()});
    if (!inner_.empty()) x = as_image(call_.norm(inner_, "inner_norm", as_stream(x)), height, width);
    x = activated(made(x, {.scope = "in", .role = "conv", .kernel = 1, .out = layer_.inner, .bias = bias}));
    return as_stream(made(x, {.scope = "out", .role = last_role(), .kernel = 1, .out = channels, .bias = bias}));
  }

  const BranchCall& call_;
  const ImageLayout& layout_;
  const ImageLayer& layer_;
  std::string inner_;
};

}  // namespace

LayerBranch convolution_layer_branch(const ImageLayout& layout) {
  return {.kind = &branch_kind("conv"),
          .build = [layout](const BranchCall& call) { return BlockBuilder(call, layout).branch(); },
          .skip = [layout](const BranchCall& call) { return BlockBuilder(call, layout).skip(); },
          .enter = [layout](const BranchCall& call) { return BlockBuilder(call, layout).enter(); }};
}

}  // namespace norma
