// x | noised: component k with weight r_k ~ exp(-|noised - alpha m_k|^2 / (2 s^2)), s^2 = alpha^2 deviation^2 +
// sigma^2; given k normal with mean m_k + g (noised - alpha m_k), g = alpha deviation^2 / s^2, and variance deviation^2
// sigma^2 / s^2.
#include "norma/data/gaussian_mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/draws.h"
#include "data/settings.h"

namespace norma {
namespace {

// Error of an answer, as a multiple of the error in the clean sample: e = -(sigma / alpha) d, v = -(1 / sigma) d.
double squared_error_factor(Predicted prediction, double alpha, double sigma) {
  switch (prediction) {
    case Predicted::epsilon: return alpha * alpha / (sigma * sigma);
    case Predicted::x0: return 1;
    case Predicted::v: return 1 / (sigma * sigma);
  }
  return 1;
}

}  // namespace

GaussianMixture::Posterior GaussianMixture::posterior(std::span<const double> noised, double alpha, double sigma,
                                                      std::optional<std::int32_t> given) const {
  const double spread = alpha * alpha * deviation * deviation + sigma * sigma;
  const double pull = alpha * deviation * deviation / spread;
  const std::size_t n = noised.size();
  std::vector<double> logs(classes.size(), -std::numeric_limits<double>::infinity());
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < classes.size(); ++k) {
    if (given && classes[k] != *given) continue;
    double square = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double off = noised[i] - alpha * means[k * n + i];
      square += off * off;
    }
    logs[k] = -square / (2 * spread);
    largest = std::max(largest, logs[k]);
  }
  Posterior found{.mean = std::vector<double>(n, 0), .variance = 0};
  double total = 0, square = 0;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    const double weight = std::exp(logs[k] - largest);
    if (!(weight > 0)) continue;
    total += weight;
    for (std::size_t i = 0; i < n; ++i) {
      const double mean = means[k * n + i], here = mean + pull * (noised[i] - alpha * mean);
      found.mean[i] += weight * here;
      square += weight * here * here;
    }
  }
  double of_mean = 0;
  for (double& mean : found.mean) {
    mean /= total;
    of_mean += mean * mean;
  }
  const double between = (square / total - of_mean) / static_cast<double>(n);
  found.variance = deviation * deviation * sigma * sigma / spread + std::max(0.0, between);
  return found;
}

Estimated least_denoising_loss(const GaussianMixture& mixture, const DiffusionConfig& config, bool has_classes) {
  const NoiseSchedule schedule(config);
  const auto n = static_cast<std::size_t>(mixture.dimensions);
  // As many as a second or so allows, at least some for each of ten parts of the schedule.
  const double work = static_cast<double>(mixture.components() * mixture.dimensions);
  const auto draws_wanted = static_cast<std::int64_t>(std::clamp(1e8 / work, 1024.0, 65536.0));
  std::vector<double> noised(n);
  double sum = 0, squares = 0;
  for (std::int64_t draw = 0; draw < draws_wanted; ++draw) {
    Draws draws(0, hash_name("data.diffusion.optimum"), 0, static_cast<std::uint32_t>(draw));
    const double place = (static_cast<double>(draw) + draws.unit()) / static_cast<double>(draws_wanted);
    const auto t =
        std::min(schedule.steps() - 1, static_cast<std::int64_t>(place * static_cast<double>(schedule.steps())));
    const double alpha = schedule.alpha(t), sigma = schedule.sigma(t);
    const std::size_t k = draws.below(static_cast<std::uint32_t>(mixture.components()));
    for (std::size_t i = 0; i < n; ++i)
      noised[i] =
          alpha * (mixture.means[k * n + i] + mixture.deviation * normal_draw(draws)) + sigma * normal_draw(draws);
    const bool told = has_classes && config.conditional;
    double variance = 0;
    if (!told || config.drop > 0)
      variance += (told ? config.drop : 1) * mixture.posterior(noised, alpha, sigma).variance;
    if (told) variance += (1 - config.drop) * mixture.posterior(noised, alpha, sigma, mixture.classes[k]).variance;
    const double loss = variance * squared_error_factor(config.prediction, alpha, sigma);
    sum += loss;
    squares += loss * loss;
  }
  const double count = static_cast<double>(draws_wanted), mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean) / count)};
}

}  // namespace norma
