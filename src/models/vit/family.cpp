// x0 = patches W + b + positions, behind a learned token where one is wanted; encoder layers wired by the scheme;
// logits = of that token or of the mean over patches. Dosovitskiy et al. 2021, arXiv 2010.11929; DeiT: arXiv
// 2012.12877.
#include "models/vit/family.h"

#include "models/images/images.h"
#include "norma/core/error.h"
#include "norma/ops/pooling.h"
#include "norma/ops/reduce.h"
#include "norma/ops/softmax.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

std::int64_t class_tokens(const ModelConfig& c) { return size_of(c, "class_token"); }

void check_vit(const ModelConfig& c) {
  check_image_classifier(c);
  ImagePatches(c).check_divides(c);
  if (class_tokens(c) > 1) fail("model.sizes.class_token is {}; expected 1, or nothing", class_tokens(c));
  check_positions(c);
}

std::vector<StackSites> vit_stack(const ModelConfig& c) {
  return {{.layers = c.layers, .branches = transformer_layer(Memory::absent, Mask::full)}};
}

// With the token in front that answers, where one is wanted.
Wire embed_image(ModelBuilder& b, const SchemeRules& rules) {
  const ModelConfig& c = b.config();
  Wire x = embed_patches(b, "image", ImagePatches(c), rules);
  if (class_tokens(c) > 0) {
    const Wire token = b.parameters().make(
        {1, c.width}, b.outer("embedding.class_token", "embedding", c.embedding_std, rules, UnitVectors::rows));
    const Wire parts[] = {broadcast_to(reshape(token, {1, 1, c.width}), {c.batch, 1, c.width}), x};
    x = concat(parts, 1);
  }
  return b.dropped(with_positions(b, x, rules), "embedding");
}

void build_vit(ModelBuilder& b) {
  const ModelConfig& c = b.config();
  const StackConfig stack = b.stack_config(0);
  const SchemeRules rules = b.rules(stack);
  const Wire out = b.through(stack, embed_image(b, rules));
  const bool token = class_tokens(c) > 0;
  b.classify(token ? reshape(slice(out, 1, 0, 1), {c.batch, c.width}) : global_average_pool(out), c.classes, stack,
             rules);
}

double patch_variance(const ModelConfig& c, const SchemeRules& rules) {
  const double variance = ImagePatches(c).variance(rules);
  if (c.positions == Positions::sinusoidal) return variance + 0.5;
  return variance + (c.positions == Positions::learned ? c.embedding_std * c.embedding_std : 0);
}

}  // namespace

FamilyRow vit_family() {
  return {
      .name = "vit",
      .habit = "reads the patches of an image all at once and says its class",
      .data = "images",
      .sizes = image_sizes({"patch", "class_token"}),
      .check = check_vit,
      .inputs = image_inputs,
      .output = class_output,
      .positions = [](const ModelConfig& c) { return ImagePatches(c).count() + class_tokens(c); },
      .sites = vit_stack,
      .build = build_vit,
      .start = patch_variance,
      .study = {.schemes = {"post", "pre", "layerscale", "rezero", "deepnorm", "peri", "dyt", "lns"},
                .keys = {"model.batch=16", "model.sizes.patch=2", "data.settings.size=6", "data.evaluation_batches=64"},
                .rates = {1e-3, 3e-3, 1e-2},
                .depths = {6, 12, 24}}};
}

}  // namespace norma
