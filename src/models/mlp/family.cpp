// x0 = features W + b; every layer is one feed-forward branch wired by the scheme; logits = final(x) V.
#include "models/mlp/family.h"

#include <cmath>

#include "models/model_builder.h"
#include "norma/core/error.h"
#include "norma/ops/linear.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

constexpr const char* kFeatures = "features";

void check_mlp(const ModelConfig& c) {
  if (size_of(c, kFeatures) < 1) fail("model.sizes.features is not given; expected the numbers of a sample");
  if (c.classes < 2) fail("classes is {}; an mlp is a classifier and needs at least 2", c.classes);
  if (c.tied) fail("an mlp has no token table that its head could be tied to");
}

std::vector<InputSpec> mlp_inputs(const ModelConfig& c) {
  return {{kFeatures, InputSpec::Content::numbers, {{"batch", c.batch}, {kFeatures, size_of(c, kFeatures)}}},
          {"targets", InputSpec::Content::targets, {{"batch", c.batch}}, c.classes}};
}

std::vector<StackSites> mlp_stack(const ModelConfig& c) {
  return {{.layers = c.layers, .branches = {feed_forward_layer_branch()}}};
}

// Features of variance 1 give a stream of variance 1, unless the scheme wants it otherwise.
double input_deviation(const ModelConfig& c) { return std::sqrt(1 / static_cast<double>(size_of(c, kFeatures))); }

void build_mlp(ModelBuilder& b) {
  const ModelConfig& c = b.config();
  const StackConfig stack = b.stack_config(0);
  const SchemeRules rules = b.rules(stack);
  const Wire weight =
      b.parameters().make({size_of(c, kFeatures), c.width},
                          b.outer("embedding.weight", "embedding", input_deviation(c), rules, UnitVectors::rows));
  Wire bias;
  if (c.biases && b.scheme().weights.biases) {
    ParameterSpec spec{.name = "embedding.bias", .init = Init::constant(0), .role = "bias"};
    rules.optimiser.apply("bias", spec);
    bias = b.parameters().make({c.width}, spec);
  }
  const Wire x = b.dropped(linear(b.input(kFeatures), weight, bias, Activation::none), "embedding");
  // A sample is a sequence of one position: what formulas do with streams, copies among them, knows three axes.
  const Wire out = b.through(stack, reshape(x, {c.batch, 1, c.width}));
  b.classify(reshape(out, {c.batch, c.width}), c.classes, stack, rules);
}

double stream_variance(const ModelConfig& c, const SchemeRules& rules) {
  const double start = rules.init.deviation_of("embedding").value_or(input_deviation(c));
  const double deviation = start * rules.init.gain_of("embedding");
  return static_cast<double>(size_of(c, kFeatures)) * deviation * deviation;
}

}  // namespace

FamilyRow mlp_family() {
  return {.name = "mlp",
          .habit = "reads the numbers of a sample all at once and says its class",
          .data = "features",
          .sizes = {{kFeatures, 32}, {"classes", 10}},
          .check = check_mlp,
          .inputs = mlp_inputs,
          .output =
              [](const ModelConfig& c) {
                return OutputSpec{.shape = {c.batch, c.classes}};
              },
          .positions = [](const ModelConfig&) { return std::int64_t{1}; },
          .sites = mlp_stack,
          .build = build_mlp,
          .start = stream_variance,
          .study = {.schemes = {"post", "pre", "x + f(x)", "rezero", "layerscale", "deepnorm", "peri", "lns"},
                    .keys = {"model.batch=64"},
                    .depths = {6, 12, 24}}};
}

}  // namespace norma
