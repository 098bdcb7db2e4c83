#include <algorithm>
#include <cmath>
#include <numbers>

#include "norma/core/error.h"
#include "norma/core/words.h"
#include "norma/data/diffusion.h"

namespace norma {
namespace {

constexpr Word<Predicted> kPredictions[] = {
    {"epsilon", Predicted::epsilon}, {"x0", Predicted::x0}, {"v", Predicted::v}};
constexpr Word<NoiseShape> kNoiseShapes[] = {{"linear", NoiseShape::linear}, {"cosine", NoiseShape::cosine}};

constexpr double kLargestVariance = 0.999;  // of one step, as in the paper of the cosine schedule

// Variance that step t of `steps` adds.
double step_variance(NoiseShape shape, std::int64_t t, std::int64_t steps) {
  const double n = static_cast<double>(steps);
  if (shape == NoiseShape::linear) {
    const double first = 1e-4 * 1000 / n, last = 0.02 * 1000 / n;
    const double share = steps == 1 ? 1 : static_cast<double>(t) / (n - 1);
    return std::min(kLargestVariance, first + share * (last - first));
  }
  constexpr double kOffset = 0.008;
  const auto kept = [&](double at) {
    const double cosine = std::cos((at / n + kOffset) / (1 + kOffset) * std::numbers::pi / 2);
    return cosine * cosine;
  };
  return std::min(kLargestVariance, 1 - kept(static_cast<double>(t) + 1) / kept(static_cast<double>(t)));
}

}  // namespace

std::string_view name_of(Predicted prediction) { return word_for(std::span(kPredictions), prediction); }
Predicted parse_prediction(std::string_view word) { return from_word(std::span(kPredictions), word, "prediction"); }
std::string_view name_of(NoiseShape shape) { return word_for(std::span(kNoiseShapes), shape); }
NoiseShape parse_noise_shape(std::string_view word) {
  return from_word(std::span(kNoiseShapes), word, "noise schedule");
}

NoiseSchedule::NoiseSchedule(NoiseShape shape, std::int64_t steps) {
  if (steps < 1) fail("a noise schedule of {} steps; expected at least 1", steps);
  double kept = 1;
  for (std::int64_t t = 0; t < steps; ++t) kept_.push_back(kept *= 1 - step_variance(shape, t, steps));
}

double NoiseSchedule::alpha(std::int64_t t) const { return std::sqrt(kept(t)); }
double NoiseSchedule::sigma(std::int64_t t) const { return std::sqrt(1 - kept(t)); }

Denoised denoised(Predicted prediction, double answer, double noised, double alpha, double sigma) {
  switch (prediction) {
    case Predicted::epsilon: return {(noised - sigma * answer) / alpha, answer};
    case Predicted::x0: return {answer, (noised - alpha * answer) / sigma};
    case Predicted::v: return {alpha * noised - sigma * answer, sigma * noised + alpha * answer};
  }
  return {};
}

double answer_for(Predicted prediction, double clean, double noise, double alpha, double sigma) {
  switch (prediction) {
    case Predicted::epsilon: return noise;
    case Predicted::x0: return clean;
    case Predicted::v: return alpha * noise - sigma * clean;
  }
  return 0;
}

}  // namespace norma
