#include "models/dit/condition.h"

#include <algorithm>
#include <cmath>

#include "models/images/images.h"
#include "norma/core/error.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/linear.h"
#include "norma/ops/time_features.h"

namespace norma {
namespace {

// x W + b in a scope of its own.
Wire time_layer(ModelBuilder& b, const char* scope_name, Wire x, std::int64_t width, const SchemeRules& rules,
                Activation activation) {
  const auto scope = b.graph().scope(scope_name);
  const std::int64_t in = x.shape().channels();
  const double xavier = std::sqrt(2.0 / static_cast<double>(in + width));
  const Wire weight =
      b.parameters().make({in, width}, b.outer("weight", "embedding", xavier, rules, UnitVectors::none));
  ParameterSpec bias{.name = "bias", .init = Init::constant(0), .role = "bias"};
  rules.optimiser.apply("bias", bias);
  return linear(x, weight, b.parameters().make({width}, bias), activation);
}

// E silu(z)^2 of a normal number of this variance, by the trapezium rule.
double silu_square(double variance) {
  constexpr int kPoints = 400;
  constexpr double kReach = 8;
  double sum = 0, weights = 0;
  for (int i = 0; i <= kPoints; ++i) {
    const double x = kReach * (2.0 * i / kPoints - 1), z = x * std::sqrt(variance), weight = std::exp(-x * x / 2);
    const double value = z / (1 + std::exp(-z));
    sum += weight * value * value;
    weights += weight;
  }
  return sum / weights;
}

}  // namespace

std::vector<InputSpec> denoiser_inputs(const ModelConfig& c) {
  const std::vector<InputSpec::Size> image = image_axes(c);
  std::vector<InputSpec> inputs = {{"noised", InputSpec::Content::numbers, image},
                                   {"timestep", InputSpec::Content::numbers, {{"batch", c.batch}}}};
  if (c.classes > 0) inputs.push_back({"class", InputSpec::Content::ids, {{"batch", c.batch}}, c.classes + 1});
  inputs.push_back({"answer", InputSpec::Content::numbers, image});
  return inputs;
}

void check_denoiser(const ModelConfig& c) {
  check_image_sizes(c);
  if (c.tied) fail("a {} has no token table that its head could be tied to", c.family->name);
  if (c.smoothing) fail("a {} answers numbers; labels that could be smoothed are of classifiers", c.family->name);
  const std::int64_t features = size_of(c, "time_features");
  if (features == 1) fail("model.sizes.time_features is 1; expected at least 2");
}

bool uses_condition(const Scheme& scheme) {
  return std::ranges::any_of(scheme.learned,
                             [](const LearnedSpec& one) { return one.from == LearnedSpec::From::condition; });
}

// Features of a timestep are cosines and sines, so their mean square is 1/2.
double condition_variance(const ModelConfig& c, std::int64_t width, const SchemeRules& rules) {
  const std::int64_t given = size_of(c, "time_features");
  const auto features = static_cast<double>(given == 0 ? std::max<std::int64_t>(2, width) : given);
  const auto wide = static_cast<double>(width);
  const auto squared = [&](double usual) {
    return std::pow(rules.init.deviation_of("embedding").value_or(usual) * rules.init.gain_of("embedding"), 2);
  };
  const double hidden = features / 2 * squared(std::sqrt(2 / (features + wide)));
  const double told = wide * silu_square(hidden) * squared(std::sqrt(1 / wide));
  return told + (c.classes > 0 ? squared(c.embedding_std) : 0);
}

Wire build_condition(ModelBuilder& b, std::int64_t width, const SchemeRules& rules) {
  const ModelConfig& c = b.config();
  const std::int64_t given = size_of(c, "time_features");
  const Wire features =
      time_features(b.input("timestep"), given == 0 ? std::max<std::int64_t>(2, c.width) : given, "time.frequencies");
  const auto scope = b.graph().scope("time");
  const Wire hidden = time_layer(b, "in", features, width, rules, Activation::silu);
  const Wire told = time_layer(b, "out", hidden, width, rules, Activation::none);
  if (c.classes == 0) return told;
  const auto root = b.graph().scope_at("");
  const Wire table = b.parameters().make(
      {c.classes + 1, width}, b.outer("embedding.class", "embedding", c.embedding_std, rules, UnitVectors::none));
  return told + embedding(table, b.input("class"));
}

}  // namespace norma
