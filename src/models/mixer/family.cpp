// x0 = patches W + b; every layer has a branch that mixes positions, W2 act(W1 x) along them with the same weights for
// all channels, and a feed-forward branch; logits = mean over patches of final(x), times V. Tolstikhin et al. 2021,
// arXiv 2105.01601.
#include "models/mixer/family.h"

#include <algorithm>

#include "models/images/images.h"
#include "models/options.h"
#include "norma/core/error.h"
#include "norma/models/branch_tables.h"
#include "norma/ops/pooling.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

// Half the width, as in the paper's models.
std::int64_t token_hidden(const ModelConfig& c) {
  const std::int64_t given = size_of(c, "token_hidden");
  return given > 0 ? given : std::max<std::int64_t>(1, c.width / 2);
}

void check_mixer(const ModelConfig& c) {
  check_image_classifier(c);
  ImagePatches(c).check_divides(c);
  if (c.scheme->weights.unit) fail("a mixer has no weights of unit length, which scheme '{}' asks for", c.scheme->name);
}

// A feed-forward branch over positions: x[batch, positions, channels] is turned over and back.
LayerBranch token_mixing_branch(std::int64_t hidden) {
  return {.kind = &branch_kind("token"), .build = [hidden](const BranchCall& call) {
            if (call.in.shape().rank() != 3)
              fail("token mixing reads positions [batch, positions, channels], but was given {}",
                   call.in.shape().str());
            const Wire mixed = feed_forward_branch(call.parameters, swap_axes(call.in, 1, 2),
                                                   {.hidden = hidden,
                                                    .activation = call.stack.activation,
                                                    .init = call.rules.init,
                                                    .inner_norm = call.options.text("inner"),
                                                    .norm = call.norm,
                                                    .optimiser = call.rules.optimiser,
                                                    .style = call.style});
            return swap_axes(mixed, 1, 2);
          }};
}

std::vector<StackSites> mixer_stack(const ModelConfig& c) {
  return {{.layers = c.layers, .branches = {token_mixing_branch(token_hidden(c)), feed_forward_layer_branch()}}};
}

void build_mixer(ModelBuilder& b) {
  const ModelConfig& c = b.config();
  const StackConfig stack = b.stack_config(0);
  const SchemeRules rules = b.rules(stack);
  const Wire x = embed_patches(b, "image", ImagePatches(c), rules);
  const Wire out = b.through(stack, b.dropped(x, "embedding"));
  b.classify(global_average_pool(out), c.classes, stack, rules);
}

double mixer_variance(const ModelConfig& c, const SchemeRules& rules) {
  if (rules.init.deviation_of("ffn"))
    throw NotPredictedError("the theory has no rule for token mixing that starts with a deviation of its own");
  return ImagePatches(c).variance(rules);
}

}  // namespace

FamilyRow mixer_family() {
  return {
      .name = "mixer",
      .habit = "mixes the patches of an image over positions and channels in turn and says its class",
      .data = "images",
      .sizes = image_sizes({"patch", "token_hidden"}),
      .check = check_mixer,
      .inputs = image_inputs,
      .output = class_output,
      .positions = [](const ModelConfig& c) { return ImagePatches(c).count(); },
      .sites = mixer_stack,
      .build = build_mixer,
      .start = mixer_variance,
      .study = {.schemes = {"post", "pre", "layerscale", "rezero", "deepnorm", "peri", "dyt", "lns"},
                .keys = {"model.batch=16", "model.sizes.patch=2", "data.settings.size=6", "data.evaluation_batches=64"},
                .rates = {3e-3, 1e-2, 3e-2},
                .depths = {6, 12, 24}}};
}

}  // namespace norma
