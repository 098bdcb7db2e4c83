#include "norma/lab/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "norma/core/error.h"
#include "norma/theory/predict.h"

namespace norma {
namespace {

constexpr std::int64_t kDeepest = 1024;
constexpr std::int64_t kDepths[] = {12, 24, 48, 96};  // that exponents are taken over; the sentence names their ends
constexpr double kLikeness = 0.05;                    // between exponents that are called the same

ModelTheory theory_of(ModelConfig model, const SchemeChoice& scheme) {
  model.scheme = scheme;
  return ModelTheory(model);
}

double growth_of(const ModelTheory& theory) {
  std::vector<Prediction> predictions;
  for (const std::int64_t layers : kDepths) predictions.push_back(theory.at(layers));
  return exponents_of(predictions).amplification;
}

// The smallest depth at which amplification reaches `bound`; nothing up to kDeepest.
std::optional<std::int64_t> depth_of(const ModelTheory& theory, double bound) {
  const auto reaches = [&](std::int64_t layers) { return !(theory.at(layers).amplification < bound); };
  std::int64_t high = 1;
  while (high < kDeepest && !reaches(high)) high *= 2;
  if (!reaches(high)) return std::nullopt;
  std::int64_t low = high / 2;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (reaches(middle) ? high : low) = middle;
  }
  return high;
}

std::string place_between(double growth, double pre, double post) {
  if (std::abs(growth - pre) < kLikeness) return "no faster than Pre-LN, slower than Post-LN";
  if (std::abs(growth - post) < kLikeness) return "as fast as Post-LN, faster than Pre-LN";
  if (growth < pre) return "slower than both Pre-LN and Post-LN";
  return growth > post ? "faster than both Pre-LN and Post-LN" : "between Pre-LN and Post-LN";
}

std::string warmup_words(const std::optional<std::int64_t>& depth) {
  if (!depth) return fmt::format("no need of warmup is to be expected up to {} layers", kDeepest);
  if (*depth <= 1) return "expect to need warmup at any depth";
  return fmt::format("expect to need warmup from {} layers on, where it is that of Post-LN with {}", *depth,
                     kWarmupLayers);
}

}  // namespace

std::string judge_by_theory(const ModelConfig& model) {
  try {
    const ModelTheory own = theory_of(model, model.scheme), pre = theory_of(model, "pre"),
                      post = theory_of(model, "post");
    const double growth = growth_of(own), slow = growth_of(pre), fast = growth_of(post);
    if (!std::isfinite(growth))
      return fmt::format("By theory, at width {}, a small change of the weights does not move the output at init.",
                         model.width);
    const std::string law = std::abs(growth) < kLikeness ? std::string("does not grow with depth")
                            : growth < 0                 ? fmt::format("shrinks with depth as N^{:.2f}", growth)
                                                         : fmt::format("grows with depth as N^{:.2f}", growth);
    return fmt::format(
        "By theory, from {} to {} layers of width {}, amplification {}, {} (Pre-LN N^{:.2f}, Post-LN "
        "N^{:.2f}); {}.",
        std::ranges::min(kDepths), std::ranges::max(kDepths), model.width, law, place_between(growth, slow, fast), slow,
        fast, warmup_words(depth_of(own, post.at(kWarmupLayers).amplification)));
  } catch (const Error& error) {
    return fmt::format("The theory has no judgement of this scheme: {}.", error.what());
  }
}

}  // namespace norma
