// x0 = patches W + b + positions; encoder layers wired by the scheme, which makes scales, shifts and gates of the
// condition c = perceptron(features of t) + table[class], or with a scheme that makes nothing of it x0 + c; answer =
// final(x) V + b, patch by patch. Peebles, Xie 2023, arXiv 2212.09748.
#include "models/dit/family.h"

#include "models/dit/condition.h"
#include "models/images/images.h"
#include "norma/core/error.h"
#include "norma/models/branch_tables.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

// Of four pixels a side unless it says otherwise, or of 2 or 1 where the image does not divide into those.
ImagePatches dit_patches(const ModelConfig& c) {
  std::int64_t side = 4;
  while (size_of(c, "image_height") % side != 0 || size_of(c, "image_width") % side != 0) side /= 2;
  return ImagePatches(c, side);
}

void check_dit(const ModelConfig& c) {
  check_denoiser(c);
  dit_patches(c).check_divides(c);
  check_positions(c);
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

// Numbers of every patch back where they belong: [batch, rows, columns, side, side channels] with the middle axes
// exchanged is the image.
Wire image_of_patches(Wire x, const ImagePatches& p) {
  const std::int64_t batch = x.shape()[0];
  const Wire split = reshape(x, {batch, p.rows, p.columns, p.side, p.side * p.channels});
  return reshape(permute(split, {0, 1, 3, 2, 4}), {batch, p.rows * p.side, p.columns * p.side, p.channels});
}

void build_dit(ModelBuilder& b) {
  const ModelConfig& c = b.config();
  const ImagePatches patches = dit_patches(c);
  StackConfig stack = b.stack_config(0);
  const SchemeRules rules = b.rules(stack);
  const Wire condition = build_condition(b, c.width, rules);
  Wire x = with_positions(b, embed_patches(b, "noised", patches, rules), rules);
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

// What a condition adds to the stream is the same for all patches of a sample; the theory takes it as their own.
double noised_variance(const ModelConfig& c, const SchemeRules& rules) {
  if (uses_condition(*c.scheme))
    throw NotPredictedError("the theory has no rule for scales, shifts and gates that a condition makes");
  const double positions = c.positions == Positions::learned      ? c.embedding_std * c.embedding_std
                           : c.positions == Positions::sinusoidal ? 0.5
                                                                  : 0;
  return dit_patches(c).variance(rules) + positions + condition_variance(c, c.width, rules);
}

}  // namespace

FamilyRow dit_family() {
  return {.name = "dit",
          .habit = "reads the patches of a noised image all at once and says what was added to it",
          .data = "noised",
          .sizes = image_sizes({"patch", "time_features"}),
          .check = check_dit,
          .inputs = denoiser_inputs,
          .output = image_output,
          .positions = [](const ModelConfig& c) { return dit_patches(c).count(); },
          .sites = dit_stack,
          .build = build_dit,
          .start = noised_variance,
          .study = {.schemes = {"adaln_zero", "adaln", "pre", "post", "rezero", "layerscale", "deepnorm", "peri"},
                    .keys = {"model.batch=32", "data.evaluation_batches=32"},
                    .rates = {3e-3, 1e-2, 3e-2},
                    .depths = {6, 12, 24}}};
}

}  // namespace norma
