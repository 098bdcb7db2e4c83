// x0 = stem(image); every layer is one branch of convolutions wired by the scheme; logits = mean over pixels of
// final(x), times V. He et al. 2016, arXiv 1512.03385 and 1603.05027.
#include "models/resnet/family.h"

#include <algorithm>
#include <cmath>

#include "models/images/images.h"
#include "models/norm_sites.h"
#include "models/options.h"
#include "models/resnet/branch.h"
#include "models/resnet/weights.h"
#include "norma/core/error.h"
#include "norma/models/branch_tables.h"
#include "norma/ops/activation.h"
#include "norma/ops/pooling.h"

namespace norma {
namespace {

void check_resnet(const ModelConfig& c) {
  check_image_classifier(c);
  if (c.layers < 1) fail("a stack needs at least one layer, but {} were asked for", c.layers);
  image_layout(c);
}

std::vector<StackSites> resnet_stack(const ModelConfig& c) {
  const ImageLayout layout = image_layout(c);
  StackSites stack{.layers = c.layers, .branches = {convolution_layer_branch(layout)}};
  for (const ImageLayer& layer : layout.layers) stack.widths.push_back(layer.out);
  stack.since = layout.since();
  return {stack};
}

// The norm of that option, where the scheme wants one there, on x[batch, .., channels].
Wire normed(ModelBuilder& b, const BranchChoice& options, const char* option, const char* site, Wire x,
            const SchemeRules& rules) {
  const std::string kind = options.text(option);
  if (kind.empty()) return x;
  return NormSites(b.parameters(), b.scheme(), b.config().norm, b.statistics(), b.config().norm_groups,
                   NormPositions::image)
      .apply(kind, site, x, "norm", rules.optimiser);
}

// The first convolutions, with the norm and activation that the scheme wants there, and pooling where they are large.
Wire build_stem(ModelBuilder& b, const StackConfig& stack, const BranchChoice& options, const SchemeRules& rules) {
  const ModelConfig& c = b.config();
  const ImageLayout layout = image_layout(c);
  const std::string word = options.text("activation");
  const Activation activation = word.empty() ? c.activation : parse_activation(word);
  const auto part = [&](Wire image, const char* scope, std::int64_t kernel, std::int64_t out, std::int64_t stride) {
    const Wire y =
        convolve(b.parameters(), image,
                 {.scope = scope,
                  .role = "embedding",
                  .kernel = kernel,
                  .out = out,
                  .stride = stride,
                  .reach = layout.patches() ? ConvolutionWeight::Reach::patches : ConvolutionWeight::Reach::centred,
                  .bias = layout.patches() && c.biases && b.scheme().weights.biases,
                  .form = form_of_weights(b.scheme(), stack)},
                 rules);
    const Wire x = normed(b, options, "stem", (std::string(scope) + ".norm").c_str(), as_stream(y), rules);
    // Patches are embedded, not looked at: nothing bends them.
    const bool bends = !options.text("stem").empty() && !layout.patches();
    return as_image(bends ? activate(x, activation) : x, y.shape()[1], y.shape()[2]);
  };
  const std::int64_t stride = layout.patches() ? layout.stem : layout.pooled() ? 2 : 1;
  Wire x = b.input("image");
  if (layout.deep_stem) {
    x = part(x, "stem1", 3, c.width / 2, stride);
    x = part(part(x, "stem2", 3, c.width / 2, 1), "stem", 3, c.width, 1);
  } else {
    x = part(x, "stem", layout.stem, c.width, stride);
  }
  if (layout.pooled()) x = max_pool(x, {.size = 3, .stride = 2, .padding = 1});
  return b.dropped(as_stream(x), "stem");
}

void build_resnet(ModelBuilder& b) {
  const StackConfig stack = b.stack_config(0);
  const SchemeRules rules = b.rules(stack);
  const Variables numbers = stack_numbers(b.scheme(), stack, b.config().width, 1, 1);
  const BranchChoice options(b.scheme(), branch_kind("conv"), {}, numbers);
  const Wire out = b.through(stack, build_stem(b, stack, options, rules));
  const Wire mean = global_average_pool(out);
  b.classify(normed(b, options, "head", "head_norm", mean, rules), b.config().classes, stack, rules);
}

// Of pixels of variance 1, away from the border. What the theory cannot follow is named here, where it first asks.
double stem_variance(const ModelConfig& c, const SchemeRules& rules) {
  const ImageLayout layout = image_layout(c);
  const auto refuse = [](const std::string& what) { return NotPredictedError("the theory has no rule for " + what); };
  if (std::ranges::any_of(layout.layers, [](const ImageLayer& layer) { return layer.changes_shape(); }))
    throw refuse("a stream whose shape changes; it predicts residual networks of one stage (model.sizes.stages = 1)");
  if (layout.inverted) throw refuse("inverted blocks of convolutions");
  if (rules.init.deviation_of("conv") || rules.init.deviation_of("conv_out"))
    throw refuse("convolutions that start with a deviation of their own");
  const auto options = c.scheme->branch_options.find("conv");
  if (options != c.scheme->branch_options.end() && options->second.contains("stem"))
    throw refuse("a stem with a norm and an activation");
  const double pixels = static_cast<double>(layout.stem * layout.stem * size_of(c, "image_channels"));
  const double he = std::sqrt(2 / static_cast<double>(layout.stem * layout.stem * c.width));
  const double deviation = rules.init.deviation_of("embedding").value_or(he) * rules.init.gain_of("embedding");
  return pixels * deviation * deviation;
}

}  // namespace

FamilyRow resnet_family() {
  return {.name = "resnet",
          .habit = "reads an image and says its class",
          .data = "images",
          .sizes = image_sizes({"stages", "blocks1", "blocks2", "blocks3", "blocks4", "width2", "width3", "width4",
                                "stem", "deep_stem", "kernel", "expansion"}),
          .check = check_resnet,
          .inputs = image_inputs,
          .output = class_output,
          .positions = [](const ModelConfig& c) { return image_layout(c).positions(); },
          .sites = resnet_stack,
          .build = build_resnet,
          .layers = FamilyRow::Layers::different,
          .start = stem_variance,
          .study = {.schemes = {"resnet_v1", "resnet_v2", "fixup", "skipinit", "rezero", "nf_resnet"},
                    .keys = {"model.norm=batch", "model.layers=9", "model.width=8", "model.batch=32",
                             "data.settings.size=8", "data.evaluation_batches=48"},
                    .rates = {3e-3, 1e-2, 3e-2},
                    .depths = {6, 12, 24}}};
}

}  // namespace norma
