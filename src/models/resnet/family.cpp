// x0 = stem(image); every layer is one branch of convolutions wired by the scheme; logits = mean over pixels of
// final(x), times V. He et al. 2016, arXiv 1512.03385 and 1603.05027.
#include "models/resnet/family.h"

#include "models/model_builder.h"
#include "models/norm_sites.h"
#include "models/options.h"
#include "models/resnet/branch.h"
#include "norma/core/error.h"
#include "norma/ops/pooling.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

void check_resnet(const ModelConfig& c) {
  for (const char* name : {"image_height", "image_width", "image_channels"}) {
    if (size_of(c, name) < 1) fail("model.sizes.{} is not given; expected that of the images", name);
  }
  if (c.classes < 2) fail("classes is {}; a resnet is a classifier and needs at least 2", c.classes);
  if (c.tied) fail("a resnet has no token table that its head could be tied to");
  if (c.layers < 1) fail("a stack needs at least one layer, but {} were asked for", c.layers);
  image_layout(c);
}

std::vector<InputSpec> image_inputs(const ModelConfig& c) {
  return {{"image",
           InputSpec::Content::numbers,
           {{"batch", c.batch},
            {"image_height", size_of(c, "image_height")},
            {"image_width", size_of(c, "image_width")},
            {"image_channels", size_of(c, "image_channels")}}},
          {"targets", InputSpec::Content::targets, {{"batch", c.batch}}, c.classes}};
}

std::vector<StackSites> resnet_stack(const ModelConfig& c) {
  const ImageLayout layout = image_layout(c);
  StackSites stack{.layers = c.layers, .branches = {convolution_layer_branch(layout)}};
  for (const ImageLayer& layer : layout.layers) stack.widths.push_back(layer.out);
  return {stack};
}

// The first convolution, with the norm and activation that the scheme wants there, and pooling where it is large.
Wire build_stem(ModelBuilder& b, const StackConfig& stack, const SchemeRules& rules) {
  const ModelConfig& c = b.config();
  const ImageLayout layout = image_layout(c);
  const bool large = layout.stem == 7;
  const Variables numbers = stack_numbers(b.scheme(), stack, c.width, 1, 1);
  const BranchChoice options(b.scheme(), branch_kind("conv"), {}, numbers);
  Wire x = convolve(
      b.parameters(), b.input("image"),
      {.scope = "stem", .role = "embedding", .kernel = layout.stem, .out = c.width, .stride = large ? 2 : 1}, rules);
  if (const std::string kind = options.text("stem"); !kind.empty()) {
    const Shape s = x.shape();
    const std::string activation = options.text("activation");
    x = NormSites(b.parameters(), b.scheme(), c.norm, b.statistics())
            .apply(kind, "stem.norm", reshape(x, {s[0], s[1] * s[2], s[3]}), "norm", rules.optimiser);
    x = reshape(activate(x, activation.empty() ? c.activation : parse_activation(activation)), s);
  }
  if (large) x = max_pool(x, {.size = 3, .stride = 2, .padding = 1});
  const Shape& s = x.shape();
  return b.dropped(reshape(x, {s[0], s[1] * s[2], s[3]}), "stem");
}

void build_resnet(ModelBuilder& b) {
  const StackConfig stack = b.stack_config(0);
  const SchemeRules rules = b.rules(stack);
  const Wire out = b.through(stack, build_stem(b, stack, rules));
  b.classify(global_average_pool(out), b.config().classes, stack, rules);
}

}  // namespace

FamilyRow resnet_family() {
  return {.name = "resnet",
          .habit = "reads an image and says its class",
          .data = "images",
          .sizes = {{"image_height", 16},
                    {"image_width", 16},
                    {"image_channels", 1},
                    {"classes", 10},
                    {"stages"},
                    {"blocks1"},
                    {"blocks2"},
                    {"blocks3"},
                    {"blocks4"},
                    {"width2"},
                    {"width3"},
                    {"width4"},
                    {"stem"},
                    {"expansion"}},
          .check = check_resnet,
          .inputs = image_inputs,
          .output =
              [](const ModelConfig& c) {
                return OutputSpec{.shape = {c.batch, c.classes}};
              },
          .positions = [](const ModelConfig& c) { return image_layout(c).positions(); },
          .sites = resnet_stack,
          .build = build_resnet,
          .layers = FamilyRow::Layers::different};
}

}  // namespace norma
