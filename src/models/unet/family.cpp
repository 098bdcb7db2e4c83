// x0 = conv(noised); blocks down, between levels a convolution that halves the image; two blocks in the middle, the
// first with attention; blocks up, each of which reads the stream beside one answer of the way down, the last one not
// yet read; answer = conv(final(x)). Ronneberger et al. 2015, arXiv 1505.04597; Ho, Jain, Abbeel 2020, arXiv
// 2006.11239.
#include "models/unet/family.h"

#include "models/dit/condition.h"
#include "models/images/images.h"
#include "models/resnet/weights.h"
#include "models/unet/branch.h"
#include "norma/core/error.h"
#include "norma/models/branch_tables.h"
#include "norma/ops/activation.h"
#include "norma/ops/upsample.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

constexpr std::int64_t kConditionFactor = 4;  // width of the condition, in those of the first level

void check_unet(const ModelConfig& c) {
  check_denoiser(c);
  if (c.layers < 1) fail("a stack needs at least one layer, but {} were asked for", c.layers);
  if (size_of(c, "transposed") > 1)
    fail("model.sizes.transposed is {}; expected 1 (transposed convolutions) or nothing", size_of(c, "transposed"));
  const UnetLayout layout = unet_layout(c);
  for (const std::vector<UnetBlock>* blocks : {&layout.down, &layout.middle, &layout.up}) {
    for (const UnetBlock& block : *blocks) {
      if (block.attends && block.out % c.heads != 0)
        fail("the U-Net attends to images {} x {} of {} channels, which {} heads do not divide", block.height,
             block.width, block.out, c.heads);
    }
  }
  if (c.scheme->formula("layer") != nullptr)
    throw NotBuiltError(
        fmt::format("scheme '{}' has a formula for a whole layer; layers of a U-Net are single blocks of convolutions, "
                    "and a formula for every sublayer suits it",
                    c.scheme->name));
}

StackSites unet_stack(const char* scope, const std::vector<UnetBlock>& blocks, Told told) {
  StackSites stack{.scope = scope,
                   .layers = static_cast<std::int64_t>(blocks.size()),
                   .branches = {unet_layer_branch(blocks, told)}};
  LayerBranch attention = transformer_layer(Memory::absent, Mask::full).front();
  for (const UnetBlock& block : blocks) {
    if (block.attends) attention.layers.insert(std::ssize(stack.widths));
    stack.widths.push_back(block.out);
  }
  if (!attention.layers.empty()) stack.branches.push_back(std::move(attention));
  return stack;
}

std::vector<StackSites> unet_stacks(const ModelConfig& c) {
  const UnetLayout layout = unet_layout(c);
  const Told told = uses_condition(*c.scheme) ? Told::by_formula : Told::by_block;
  std::vector<StackSites> stacks = {unet_stack("down", layout.down, told), unet_stack("middle", layout.middle, told),
                                    unet_stack("up", layout.up, told)};
  stacks[1].stream = stacks[2].stream = StackSites::Stream::goes_on;
  return stacks;
}

// A convolution between levels, which keeps the channels. The stream goes through it, as through the projections of
// blocks, and neither bends it: He's start would double its square at each, and every block of the way up has one.
ConvolutionWeight between(const ModelConfig& c, const std::string& scope, Wire x) {
  return {.scope = scope.c_str(),
          .role = "conv_skip",
          .out = x.shape().channels(),
          .bias = c.biases,
          .start = ConvolutionWeight::Start::keeps_size};
}

// Half as large, before this layer of the way down.
Wire shrunk(ModelBuilder& b, Wire x, const UnetBlock& block, std::int64_t layer, const SchemeRules& rules) {
  const std::string scope = "shrink" + std::to_string(layer);
  const auto root = b.graph().scope_at("");
  ConvolutionWeight weight = between(b.config(), scope, x);
  weight.stride = 2;
  return as_stream(convolve(b.parameters(), as_image(x, 2 * block.height, 2 * block.width), weight, rules));
}

// Twice as large, before this layer of the way up: pixels are repeated and smoothed by a convolution of 3 x 3, or a
// transposed one of 4 x 4 does both.
Wire grown(ModelBuilder& b, Wire x, const UnetBlock& block, std::int64_t layer, const SchemeRules& rules) {
  const std::string scope = "grow" + std::to_string(layer);
  const auto root = b.graph().scope_at("");
  const Wire image = as_image(x, block.height / 2, block.width / 2);
  ConvolutionWeight weight = between(b.config(), scope, x);
  if (size_of(b.config(), "transposed") == 0)
    return as_stream(convolve(b.parameters(), upsample(image), weight, rules));
  weight.kernel = 4;
  weight.stride = 2;
  weight.reach = ConvolutionWeight::Reach::transposed;
  return as_stream(convolve(b.parameters(), image, weight, rules));
}

void build_unet(ModelBuilder& b) {
  const ModelConfig& c = b.config();
  const UnetLayout layout = unet_layout(c);
  StackConfig down = b.stack_config(0), middle = b.stack_config(1), up = b.stack_config(2);
  const SchemeRules rules = b.rules(down);
  const Wire condition = activate(build_condition(b, kConditionFactor * c.width, rules), Activation::silu);
  Wire x = as_stream(convolve(b.parameters(), b.input("noised"),
                              {.scope = "stem", .role = "embedding", .out = c.width, .bias = c.biases}, rules));
  std::vector<Wire> kept;  // what the way up reads: the stem's answer and those of blocks and convolutions down
  for (StackConfig* stack : {&down, &middle, &up}) {
    stack->condition = condition;
    stack->ends = stack == &up;
  }
  down.enter = [&](std::int64_t layer, Wire stream) {
    kept.push_back(stream);
    const UnetBlock& block = layout.down[static_cast<std::size_t>(layer)];
    if (block.resized) kept.push_back(stream = shrunk(b, stream, block, layer, rules));
    return stream;
  };
  const auto through = [&](const char* scope_name, const StackConfig& stack, Wire stream) {
    const auto scope = b.graph().scope(scope_name);
    return b.through(stack, stream);
  };
  x = through("down", down, b.dropped(x, "stem"));
  kept.push_back(x);
  middle.width = up.width = x.shape().channels();
  x = through("middle", middle, x);
  up.enter = [&](std::int64_t layer, Wire stream) {
    const UnetBlock& block = layout.up[static_cast<std::size_t>(layer)];
    if (block.resized) stream = grown(b, stream, block, layer, rules);
    const Wire parts[] = {stream, kept.at(kept.size() - 1 - static_cast<std::size_t>(layer))};
    return concat_last(parts);
  };
  const Wire out = through("up", up, x);
  const std::int64_t height = size_of(c, "image_height"), width = size_of(c, "image_width");
  b.regress(out, convolve(b.parameters(), as_image(out, height, width),
                          {.scope = "head",
                           .role = "head",
                           .out = size_of(c, "image_channels"),
                           .bias = c.biases,
                           .start = ConvolutionWeight::Start::keeps_size},
                          rules));
}

double no_variance(const ModelConfig&, const SchemeRules&) {
  throw NotPredictedError(
      "the theory has no rule for a U-Net: its stream changes its shape, and blocks on the way up read what was kept "
      "on "
      "the way down");
}

}  // namespace

FamilyRow unet_family() {
  return {.name = "unet",
          .habit = "reads a noised image, makes it small and large again and says what was added to it",
          .data = "noised",
          .sizes = image_sizes({"levels", "width2", "width3", "width4", "attention", "transposed", "time_features"}),
          .check = check_unet,
          .inputs = denoiser_inputs,
          .output = image_output,
          .positions = [](const ModelConfig& c) { return size_of(c, "image_height") * size_of(c, "image_width"); },
          .sites = unet_stacks,
          .build = build_unet,
          .layers = FamilyRow::Layers::different,
          .start = no_variance,
          .study = {.schemes = {"unet", "resnet_v2", "rezero", "skipinit", "pre"},
                    .keys = {"model.norm=group", "model.layers=3", "model.width=8", "model.batch=16",
                             "data.task=shapes", "data.settings.size=8"},
                    .rates = {3e-4, 1e-3, 3e-3, 1e-2},
                    .depths = {3, 6, 12}}};
}

}  // namespace norma
