#include "norma/lab/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
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

Exponents laws_of(const ModelTheory& theory) {
  std::vector<Prediction> predictions;
  for (const std::int64_t layers : kDepths) predictions.push_back(theory.at(layers));
  return exponents_of(predictions);
}

std::string law_words(const Exponents& laws) {
  if (const std::optional<double>& factor = laws.amplification_factor)
    return fmt::format("{} exponentially with depth, {:.3g} times with every layer", *factor > 1 ? "grows" : "shrinks",
                       *factor);
  const double growth = laws.amplification;
  if (std::abs(growth) < kLikeness) return "does not grow with depth";
  return fmt::format("{} with depth as N^{:.2f}", growth < 0 ? "shrinks" : "grows", growth);
}

// From which depth on squares of the stream are too large for single precision; nothing where it does not grow so.
std::optional<double> depth_that_fits(const Exponents& laws) {
  if (!laws.stream_factor || *laws.stream_factor <= 1) return std::nullopt;
  return std::round(std::log(std::numeric_limits<float>::max()) / 2 / std::log(*laws.stream_factor));
}

// What no warmup mends; empty: nothing.
std::string stream_words(const Exponents& laws) {
  if (const std::optional<double> depth = depth_that_fits(laws))
    return fmt::format(
        " Its stream grows {:.3g} times with every layer: from about {:.0f} layers on its squares are beyond single "
        "precision, whatever the rate.",
        *laws.stream_factor, *depth);
  return laws.stream_factor
             ? fmt::format(
                   " Its stream shrinks to {:.3g} of its size with every layer, so deep models pass nothing on: it "
                   "needs a path around its branches, or a norm.",
                   *laws.stream_factor)
             : "";
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
  if (std::abs(growth - pre) < kLikeness) return "as fast as Pre-LN, slower than Post-LN";
  if (std::abs(growth - post) < kLikeness) return "as fast as Post-LN, faster than Pre-LN";
  if (growth < pre) return "slower than both Pre-LN and Post-LN";
  return growth > post ? "faster than both Pre-LN and Post-LN" : "between Pre-LN and Post-LN";
}

std::string warmup_words(const std::optional<std::int64_t>& depth, const Exponents& laws) {
  // Of a stream that shrinks or is too large by then, warmup is no question.
  if (laws.stream_factor && !(static_cast<double>(depth.value_or(kDeepest)) < depth_that_fits(laws).value_or(0)))
    return "";
  if (!depth) return fmt::format("; warmup should not be needed up to {} layers", kDeepest);
  if (*depth <= 1) return "; expect to need warmup at any depth";
  // Far beyond what the law was fitted to, its last digits mean nothing.
  const bool far = *depth > std::ranges::max(kDepths);
  const double digit = std::pow(10, std::floor(std::log10(static_cast<double>(*depth))) - 1);
  return fmt::format("; expect to need warmup from {}{:.0f} layers on, where amplification is that of Post-LN with {}",
                     far ? "about " : "",
                     far ? std::round(static_cast<double>(*depth) / digit) * digit : static_cast<double>(*depth),
                     kWarmupLayers);
}

// What is known of warmup is known of layers with attention.
bool has_attention(const ModelConfig& model) {
  const std::vector<StackSites> stacks = model.family->sites(model);
  return std::ranges::any_of(stacks, [](const StackSites& stack) {
    return std::ranges::any_of(stack.kinds(), [](const BranchKind* kind) { return kind->key == "attention"; });
  });
}

}  // namespace

std::string judge_by_theory(const ModelConfig& model) {
  try {
    const ModelTheory own = theory_of(model, model.scheme), pre = theory_of(model, "pre"),
                      post = theory_of(model, "post");
    const Exponents laws = laws_of(own);
    const double growth = laws.amplification, slow = laws_of(pre).amplification, fast = laws_of(post).amplification;
    if (!std::isfinite(growth))
      return fmt::format("By theory, at width {}, a small change of the weights does not move the output at init.",
                         model.width);
    if (!has_attention(model))
      return fmt::format(
          "By theory, from {} to {} layers of width {}, amplification {} (Pre-LN N^{:.2f}, Post-LN N^{:.2f}).{}",
          std::ranges::min(kDepths), std::ranges::max(kDepths), model.width, law_words(laws), slow, fast,
          stream_words(laws));
    return fmt::format(
        "By theory, from {} to {} layers of width {}, amplification {}, {} (Pre-LN N^{:.2f}, Post-LN "
        "N^{:.2f}){}.{}",
        std::ranges::min(kDepths), std::ranges::max(kDepths), model.width, law_words(laws),
        place_between(growth, slow, fast), slow, fast,
        warmup_words(depth_of(own, post.at(kWarmupLayers).amplification), laws), stream_words(laws));
  } catch (const Error& error) {
    return fmt::format("The theory has no judgement of this scheme: {}.", error.what());
  }
}

}  // namespace norma
