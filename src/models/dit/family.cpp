// x0 = patches W + b + positions; encoder layers wired by the scheme, which makes scales, shifts and gates of the
// condition c = perceptron(features of t) + table[class], or with a scheme that makes nothing of it x0 + c; answer =
// final(x) V + b, patch by patch. Peebles, Xie 2023, arXiv 2212.09748.
#include "models/dit/family.h"

#include <cmath>

#include "models/dit/condition.h"
#include "norma/core/error.h"
#include "norma/ops/activation.h"
#include "norma/ops/convolution.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/linear.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

struct DitPatches {
  std::int64_t side, rows, columns, channels;

  explicit DitPatches(const ModelConfig& c)
      : side(side_of(c)),
        rows(size_of(c, "image_height") / side),
        columns(size_of(c, "image_width") / side),
        channels(size_of(c, "image_channels")) {}
  std::int64_t count() const { return rows * columns; }
  std::int64_t numbers() const { return side * side * channels; }

 private:
  // As given; otherwise 4, or 2 or 1 where the image does not divide into those.
  static std::int64_t side_of(const ModelConfig& c) {
    if (const std::int64_t given = size_of(c, "patch"); given > 0) return given;
    std::int64_t side = 4;
    while (size_of(c, "image_height") % side != 0 || size_of(c, "image_width") % side != 0) side /= 2;
    return side;
  }
};

void check_dit(const ModelConfig& c) {
  check_denoiser(c);
  const DitPatches patches(c);
  for (const char* name : {"image_height", "image_width"}) {
    if (size_of(c, name) % patches.side != 0)
      fail("model.sizes.{} is {}, which does not divide into patches of {}; expected a multiple", name,
           size_of(c, name), patches.side);
  }
  if (c.positions == Positions::rope)
    fail("rotary positions are of rows of tokens; expected learned, sinusoidal or none");
}

std::vector<StackSites> dit_stack(const ModelConfig& c) {
  return {{.layers = c.layers, .branches = transformer_layer(Memory::absent, Mask::full)}};
}

Wire dit_bias(ModelBuilder& b, const char* name, std::int64_t size, const SchemeRules& rules) {
  ParameterSpec spec{.name = name, .init = Init::constant(0), .role = "bias"};
  rules.optimiser.apply("bias", spec);
  return b.parameters().make({size}, spec);
}

bool has_biases(const ModelBuilder& b) { return b.config().biases && b.scheme().weights.biases; }

Wire embed_noised(ModelBuilder& b, const SchemeRules& rules) {
  const ModelConfig& c = b.config();
  const DitPatches patches(c);
  const double deviation = std::sqrt(1 / static_cast<double>(patches.numbers()));
  const Wire weight = b.parameters().make({patches.side, patches.side, patches.channels, c.width},
                                          b.outer("embedding.patch", "embedding", deviation, rules, UnitVectors::none));
  Wire x = conv2d(b.input("noised"), weight, {.stride = patches.side});
  x = reshape(x, {c.batch, patches.count(), c.width});
  if (has_biases(b)) x = x + dit_bias(b, "embedding.bias", c.width, rules);
  if (c.positions == Positions::learned) {
    ParameterSpec spec{.name = "embedding.position", .init = Init::normal(c.embedding_std), .role = "position"};
    rules.optimiser.apply("position", spec);
    x = add_positions(x, b.parameters().make({patches.count(), c.width}, spec));
  } else if (c.positions == Positions::sinusoidal) {
    x = add_positions(x, sinusoidal_positions(b.graph(), "embedding.position", patches.count(), c.width, c.dtype));
  }
  return x;
}

// Numbers of every patch back where they belong: [batch, rows, columns, side, side channels] with the middle axes
// exchanged is the image.
Wire image_of_patches(Wire x, const DitPatches& p) {
  const std::int64_t batch = x.shape()[0];
  const Wire split = reshape(x, {batch, p.rows, p.columns, p.side, p.side * p.channels});
  return reshape(permute(split, {0, 1, 3, 2, 4}), {batch, p.rows * p.side, p.columns * p.side, p.channels});
}

void build_dit(ModelBuilder& b) {
  const ModelConfig& c = b.config();
  const DitPatches patches(c);
  StackConfig stack = b.stack_config(0);
  const SchemeRules rules = b.rules(stack);
  const Wire condition = build_condition(b, c.width, rules);
  Wire x = embed_noised(b, rules);
  if (uses_condition(b.scheme())) {
    stack.condition = activate(condition, Activation::silu);
  } else {
    x = x + reshape(condition, {c.batch, 1, c.width});
  }
  const Wire out = b.through(stack, b.dropped(x, "embedding"));
  const Wire weight = b.parameters().make({c.width, patches.numbers()},
                                          b.outer("head.weight", "head", c.head_std, rules, UnitVectors::columns));
  const Wire bias = has_biases(b) ? dit_bias(b, "head.bias", patches.numbers(), rules) : Wire();
  b.regress(out, image_of_patches(linear(out, weight, bias), patches));
}

}  // namespace

FamilyRow dit_family() {
  return {.name = "dit",
          .habit = "reads the patches of a noised image all at once and says what was added to it",
          .data = "noised",
          .sizes = {{"image_height", 16},
                    {"image_width", 16},
                    {"image_channels", 1},
                    {"classes", 10},
                    {"patch"},
                    {"time_features"}},
          .check = check_dit,
          .inputs = denoiser_inputs,
          .output =
              [](const ModelConfig& c) {
                return OutputSpec{
                    OutputSpec::Kind::numbers,
                    {c.batch, size_of(c, "image_height"), size_of(c, "image_width"), size_of(c, "image_channels")}};
              },
          .positions = [](const ModelConfig& c) { return DitPatches(c).count(); },
          .sites = dit_stack,
          .build = build_dit};
}

}  // namespace norma
