// x0 = patches W + b + positions, behind a learned token where one is wanted; encoder layers wired by the scheme;
// logits = of that token or of the mean over patches. Dosovitskiy et al. 2021, arXiv 2010.11929; DeiT: arXiv
// 2012.12877.
#include "models/vit/family.h"

#include <cmath>

#include "models/model_builder.h"
#include "norma/core/error.h"
#include "norma/ops/convolution.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/pooling.h"
#include "norma/ops/reduce.h"
#include "norma/ops/softmax.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

struct Patches {
  std::int64_t side, rows, columns, channels, token;

  explicit Patches(const ModelConfig& c)
      : side(size_of(c, "patch") == 0 ? 4 : size_of(c, "patch")),
        rows(size_of(c, "image_height") / side),
        columns(size_of(c, "image_width") / side),
        channels(size_of(c, "image_channels")),
        token(size_of(c, "class_token")) {}
  std::int64_t positions() const { return rows * columns + token; }
  // Pixels of variance 1 give a stream of variance 1, unless the scheme wants it otherwise.
  double deviation() const { return std::sqrt(1 / static_cast<double>(side * side * channels)); }
};

void check_vit(const ModelConfig& c) {
  for (const char* name : {"image_height", "image_width", "image_channels"}) {
    if (size_of(c, name) < 1) fail("model.sizes.{} is not given; expected that of the images", name);
  }
  const Patches patches(c);
  for (const char* name : {"image_height", "image_width"}) {
    if (size_of(c, name) % patches.side != 0)
      fail("model.sizes.{} is {}, which does not divide into patches of {}; expected a multiple", name,
           size_of(c, name), patches.side);
  }
  if (patches.token > 1) fail("model.sizes.class_token is {}; expected 1, or nothing", patches.token);
  if (c.classes < 2) fail("classes is {}; a vit is a classifier and needs at least 2", c.classes);
  if (c.tied) fail("a vit has no token table that its head could be tied to");
  if (c.positions == Positions::rope)
    fail("rotary positions are of rows of tokens; expected learned, sinusoidal or none");
}

std::vector<InputSpec> vit_inputs(const ModelConfig& c) {
  return {{"image",
           InputSpec::Content::numbers,
           {{"batch", c.batch},
            {"image_height", size_of(c, "image_height")},
            {"image_width", size_of(c, "image_width")},
            {"image_channels", size_of(c, "image_channels")}}},
          {"targets", InputSpec::Content::targets, {{"batch", c.batch}}, c.classes}};
}

std::vector<StackSites> vit_stack(const ModelConfig& c) {
  return {{.layers = c.layers, .branches = transformer_layer(Memory::absent, Mask::full)}};
}

// Patches side by side are a convolution whose stride is its kernel.
Wire embed_patches(ModelBuilder& b, const SchemeRules& rules) {
  const ModelConfig& c = b.config();
  const Patches patches(c);
  const Wire weight =
      b.parameters().make({patches.side, patches.side, patches.channels, c.width},
                          b.outer("embedding.patch", "embedding", patches.deviation(), rules, UnitVectors::none));
  Wire x = conv2d(b.input("image"), weight, {.stride = patches.side});
  x = reshape(x, {c.batch, patches.rows * patches.columns, c.width});
  if (c.biases && b.scheme().weights.biases) {
    ParameterSpec spec{.name = "embedding.bias", .init = Init::constant(0), .role = "bias"};
    rules.optimiser.apply("bias", spec);
    x = x + b.parameters().make({c.width}, spec);
  }
  if (patches.token > 0) {
    const Wire token = b.parameters().make(
        {1, c.width}, b.outer("embedding.class_token", "embedding", c.embedding_std, rules, UnitVectors::rows));
    const Wire parts[] = {broadcast_to(reshape(token, {1, 1, c.width}), {c.batch, 1, c.width}), x};
    x = concat(parts, 1);
  }
  if (c.positions == Positions::learned) {
    ParameterSpec spec{.name = "embedding.position", .init = Init::normal(c.embedding_std), .role = "position"};
    rules.optimiser.apply("position", spec);
    x = add_positions(x, b.parameters().make({patches.positions(), c.width}, spec));
  } else if (c.positions == Positions::sinusoidal) {
    x = add_positions(x, sinusoidal_positions(b.graph(), "embedding.position", patches.positions(), c.width, c.dtype));
  }
  return b.dropped(x, "embedding");
}

void build_vit(ModelBuilder& b) {
  const ModelConfig& c = b.config();
  const StackConfig stack = b.stack_config(0);
  const SchemeRules rules = b.rules(stack);
  const Wire out = b.through(stack, embed_patches(b, rules));
  const bool token = Patches(c).token > 0;
  b.classify(token ? reshape(slice(out, 1, 0, 1), {c.batch, c.width}) : global_average_pool(out), c.classes, stack,
             rules);
}

double patch_variance(const ModelConfig& c, const SchemeRules& rules) {
  const Patches patches(c);
  const double deviation =
      rules.init.deviation_of("embedding").value_or(patches.deviation()) * rules.init.gain_of("embedding");
  const double variance = deviation * deviation / (patches.deviation() * patches.deviation());
  if (c.positions == Positions::sinusoidal) return variance + 0.5;
  return variance + (c.positions == Positions::learned ? c.embedding_std * c.embedding_std : 0);
}

}  // namespace

FamilyRow vit_family() {
  return {.name = "vit",
          .habit = "reads the patches of an image all at once and says its class",
          .data = "images",
          .sizes = {{"image_height", 16},
                    {"image_width", 16},
                    {"image_channels", 1},
                    {"classes", 10},
                    {"patch"},
                    {"class_token"}},
          .check = check_vit,
          .inputs = vit_inputs,
          .output =
              [](const ModelConfig& c) {
                return OutputSpec{.shape = {c.batch, c.classes}};
              },
          .positions = [](const ModelConfig& c) { return Patches(c).positions(); },
          .sites = vit_stack,
          .build = build_vit,
          .start = patch_variance};
}

}  // namespace norma
