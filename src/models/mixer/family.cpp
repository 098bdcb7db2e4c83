// x0 = patches W + b; every layer has a branch that mixes positions, W2 act(W1 x) along them with the same weights for
// all channels, and a feed-forward branch; logits = mean over patches of final(x), times V. Tolstikhin et al. 2021,
// arXiv 2105.01601.
#include "models/mixer/family.h"

#include <algorithm>
#include <cmath>

#include "models/model_builder.h"
#include "models/options.h"
#include "norma/core/error.h"
#include "norma/models/branch_tables.h"
#include "norma/ops/convolution.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/pooling.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

struct MixerPatches {
  std::int64_t side, rows, columns, channels;

  explicit MixerPatches(const ModelConfig& c)
      : side(size_of(c, "patch") == 0 ? 4 : size_of(c, "patch")),
        rows(size_of(c, "image_height") / side),
        columns(size_of(c, "image_width") / side),
        channels(size_of(c, "image_channels")) {}
  std::int64_t positions() const { return rows * columns; }
  // Pixels of variance 1 give a stream of variance 1, unless the scheme wants it otherwise.
  double deviation() const { return std::sqrt(1 / static_cast<double>(side * side * channels)); }
};

// Half the width, as in the paper's models.
std::int64_t token_hidden(const ModelConfig& c) {
  const std::int64_t given = size_of(c, "token_hidden");
  return given > 0 ? given : std::max<std::int64_t>(1, c.width / 2);
}

void check_mixer(const ModelConfig& c) {
  for (const char* name : {"image_height", "image_width", "image_channels"}) {
    if (size_of(c, name) < 1) fail("model.sizes.{} is not given; expected that of the images", name);
  }
  const MixerPatches patches(c);
  for (const char* name : {"image_height", "image_width"}) {
    if (size_of(c, name) % patches.side != 0)
      fail("model.sizes.{} is {}, which does not divide into patches of {}; expected a multiple", name,
           size_of(c, name), patches.side);
  }
  if (c.classes < 2) fail("classes is {}; a mixer is a classifier and needs at least 2", c.classes);
  if (c.tied) fail("a mixer has no token table that its head could be tied to");
  if (c.scheme->weights.unit) fail("a mixer has no weights of unit length, which scheme '{}' asks for", c.scheme->name);
}

std::vector<InputSpec> mixer_inputs(const ModelConfig& c) {
  return {{"image",
           InputSpec::Content::numbers,
           {{"batch", c.batch},
            {"image_height", size_of(c, "image_height")},
            {"image_width", size_of(c, "image_width")},
            {"image_channels", size_of(c, "image_channels")}}},
          {"targets", InputSpec::Content::targets, {{"batch", c.batch}}, c.classes}};
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
  const MixerPatches patches(c);
  const Wire weight =
      b.parameters().make({patches.side, patches.side, patches.channels, c.width},
                          b.outer("embedding.patch", "embedding", patches.deviation(), rules, UnitVectors::none));
  Wire x = reshape(conv2d(b.input("image"), weight, {.stride = patches.side}), {c.batch, patches.positions(), c.width});
  if (c.biases && b.scheme().weights.biases) {
    ParameterSpec spec{.name = "embedding.bias", .init = Init::constant(0), .role = "bias"};
    rules.optimiser.apply("bias", spec);
    x = x + b.parameters().make({c.width}, spec);
  }
  const Wire out = b.through(stack, b.dropped(x, "embedding"));
  b.classify(global_average_pool(out), c.classes, stack, rules);
}

double mixer_variance(const ModelConfig& c, const SchemeRules& rules) {
  const MixerPatches patches(c);
  if (rules.init.deviation_of("ffn"))
    throw NotPredictedError("the theory has no rule for token mixing that starts with a deviation of its own");
  const double deviation =
      rules.init.deviation_of("embedding").value_or(patches.deviation()) * rules.init.gain_of("embedding");
  return deviation * deviation / (patches.deviation() * patches.deviation());
}

}  // namespace

FamilyRow mixer_family() {
  return {.name = "mixer",
          .habit = "mixes the patches of an image over positions and channels in turn and says its class",
          .data = "images",
          .sizes = {{"image_height", 16},
                    {"image_width", 16},
                    {"image_channels", 1},
                    {"classes", 10},
                    {"patch"},
                    {"token_hidden"}},
          .check = check_mixer,
          .inputs = mixer_inputs,
          .output =
              [](const ModelConfig& c) {
                return OutputSpec{.shape = {c.batch, c.classes}};
              },
          .positions = [](const ModelConfig& c) { return MixerPatches(c).positions(); },
          .sites = mixer_stack,
          .build = build_mixer,
          .start = mixer_variance};
}

}  // namespace norma
