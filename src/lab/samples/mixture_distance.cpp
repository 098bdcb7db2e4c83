#include <algorithm>
#include <cmath>
#include <limits>

#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/lab/sample_quality.h"

namespace norma {
namespace {

constexpr std::size_t kMostPoints = 1024;  // distances between all pairs are kept
constexpr int kRepetitions = 200;

std::vector<double> fresh_points(const GaussianMixture& mixture, std::size_t points, std::uint64_t seed,
                                 std::string_view name) {
  const auto n = static_cast<std::size_t>(mixture.dimensions);
  const RandomStream centres(seed, std::string(name) + ".centres"), noise(seed, name);
  std::vector<double> all(points * n);
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t k = centres.below(i, static_cast<std::uint64_t>(mixture.components()));
    for (std::size_t j = 0; j < n; ++j)
      all[i * n + j] = mixture.means[k * n + j] + mixture.deviation * noise.normal(i * n + j);
  }
  return all;
}

std::vector<double> pair_distances(const std::vector<double>& a, const std::vector<double>& b, std::size_t n) {
  std::vector<double> all;
  for (std::size_t i = 0; i < a.size(); i += n) {
    for (std::size_t j = 0; j < b.size(); j += n) {
      double square = 0;
      for (std::size_t d = 0; d < n; ++d) square += (a[i + d] - b[j + d]) * (a[i + d] - b[j + d]);
      all.push_back(std::sqrt(square));
    }
  }
  return all;
}

// Distances between samples x and draws y, from which the energy distance of any choice of samples follows.
class EnergyDistance {
 public:
  EnergyDistance(const std::vector<double>& x, const std::vector<double>& y, std::size_t dimensions)
      : points_(x.size() / dimensions), others_(y.size() / dimensions), xx_(pair_distances(x, x, dimensions)) {
    const std::vector<double> xy = pair_distances(x, y, dimensions), yy = pair_distances(y, y, dimensions);
    for (std::size_t i = 0; i < points_; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < others_; ++j) sum += xy[i * others_ + j];
      to_others_.push_back(sum / static_cast<double>(others_));
    }
    for (const double d : yy) among_others_ += d;
    among_others_ /= static_cast<double>(others_ * (others_ - 1));
  }

  // Each sample as often as its weight says; pairs of one sample with itself are left out.
  double weighted(const std::vector<double>& weights) const {
    double across = 0, among = 0, total = 0, squares = 0;
    for (std::size_t i = 0; i < points_; ++i) {
      if (weights[i] == 0) continue;
      across += weights[i] * to_others_[i];
      double sum = 0;
      for (std::size_t j = 0; j < points_; ++j) sum += weights[j] * xx_[i * points_ + j];
      among += weights[i] * sum;
      total += weights[i];
      squares += weights[i] * weights[i];
    }
    return 2 * across / total - among / (total * total - squares) - among_others_;
  }
  double plain() const { return weighted(std::vector<double>(points_, 1)); }
  std::size_t points() const { return points_; }

 private:
  std::size_t points_, others_;
  std::vector<double> xx_, to_others_;
  double among_others_ = 0;
};

Resampled resampled(const EnergyDistance& distance, std::uint64_t seed) {
  std::vector<double> repeated;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const RandomStream stream(seed, "samples.bootstrap", static_cast<std::uint64_t>(repetition));
    std::vector<double> weights(distance.points(), 0);
    for (std::size_t i = 0; i < distance.points(); ++i) ++weights[stream.below(i, distance.points())];
    repeated.push_back(distance.weighted(weights));
  }
  std::sort(repeated.begin(), repeated.end());
  const auto edge = static_cast<std::size_t>(kRepetitions / 40);
  return {distance.plain(), repeated[edge], repeated[repeated.size() - 1 - edge]};
}

}  // namespace

MixtureDistance distance_to_mixture(std::span<const float> samples, const GaussianMixture& mixture,
                                    std::uint64_t seed) {
  const auto n = static_cast<std::size_t>(mixture.dimensions);
  std::vector<double> x(samples.begin(), samples.end());
  const std::size_t count = x.size() / n;
  if (count < 2) fail("{} samples are too few to be compared with a distribution; expected at least 2", count);
  MixtureDistance found;
  std::vector<std::int64_t> nearest(static_cast<std::size_t>(mixture.components()), 0);
  for (std::size_t j = 0; j < n; ++j) {
    double mean = 0, square = 0, true_mean = 0, true_square = 0;
    for (std::size_t i = 0; i < count; ++i) mean += x[i * n + j], square += x[i * n + j] * x[i * n + j];
    const auto centres = static_cast<double>(mixture.components());
    for (std::size_t k = 0; k < nearest.size(); ++k) {
      true_mean += mixture.means[k * n + j] / centres;
      true_square += mixture.means[k * n + j] * mixture.means[k * n + j] / centres;
    }
    mean /= static_cast<double>(count), square /= static_cast<double>(count);
    const double variance = square - mean * mean,
                 expected = true_square - true_mean * true_mean + mixture.deviation * mixture.deviation;
    found.mean_error = std::max(found.mean_error, std::abs(mean - true_mean));
    found.variance_error = std::max(found.variance_error, std::abs(variance - expected));
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < nearest.size(); ++k) {
      double square = 0;
      for (std::size_t j = 0; j < n; ++j) square += std::pow(x[i * n + j] - mixture.means[k * n + j], 2);
      if (square < least) least = square, best = k;
    }
    ++nearest[best];
  }
  found.empty_centres = std::count(nearest.begin(), nearest.end(), 0);
  x.resize(std::min(count, kMostPoints) * n);
  const std::vector<double> y = fresh_points(mixture, kMostPoints, seed, "samples.fresh");
  found.energy = resampled(EnergyDistance(x, y, n), seed);
  found.floor = std::abs(EnergyDistance(fresh_points(mixture, x.size() / n, seed, "samples.floor"), y, n).plain());
  return found;
}

}  // namespace norma
