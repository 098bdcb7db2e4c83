#include "data/parity/parity.h"

#include <cmath>
#include <numbers>

#include "data/settings.h"
#include "norma/core/error.h"

namespace norma {
namespace {

// Rows of normals, each made orthogonal to those before it and of length 1.
std::vector<float> fixed_rotation(std::int64_t features) {
  const auto n = static_cast<std::size_t>(features);
  const RandomStream stream(0, "data.parity.rotation");
  std::vector<double> rows(n * n);
  stream.each_normal(rows.size(), [&](std::size_t i, double normal) { rows[i] = normal; });
  const auto dot = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += rows[a * n + i] * rows[b * n + i];
    return sum;
  };
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t before = 0; before < row; ++before) {
      const double share = dot(row, before);
      for (std::size_t i = 0; i < n; ++i) rows[row * n + i] -= share * rows[before * n + i];
    }
    const double length = std::sqrt(dot(row, row));
    for (std::size_t i = 0; i < n; ++i) rows[row * n + i] /= length;
  }
  return {rows.begin(), rows.end()};
}

// Mean of the entropy of a bit given both of its coordinates, by the trapezoidal rule. By symmetry both are +s.
double bit_entropy(double s) {
  constexpr int kSteps = 400;
  constexpr double kReach = 9, kStep = 2 * kReach / kSteps;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double u = -kReach + i * kStep, first = std::tanh(s * (s + u));
    for (int j = 0; j <= kSteps; ++j) {
      const double v = -kReach + j * kStep, right = (1 + first * std::tanh(s * (s + v))) / 2;
      if (right <= 0) continue;
      // The right answer's -log p, and by symmetry that is all of it.
      sum += -std::log(right) * std::exp(-(u * u + v * v) / 2);
    }
  }
  return sum * kStep * kStep / (2 * std::numbers::pi);
}

}  // namespace

Parity::Parity(const DataConfig& config, const BatchShape& shape)
    : GeneratedSource("parity", shape, config.evaluation_batches),
      features_(whole_setting(config, "features", 16, 2, 4096)),
      bits_(whole_setting(config, "bits", 2, 1, 10)),
      separation_(number_setting(config, "separation", 2, 0.1, 10)) {
  if (features_ < 2 * bits_)
    fail("data.settings.features is {}; {} bits need {} at least", features_, bits_, 2 * bits_);
  rotation_ = fixed_rotation(features_);
}

std::map<std::string, std::int64_t> Parity::sizes() const { return {{"classes", classes()}, {"features", features_}}; }

void Parity::clear(Batch& batch) const {
  batch.numbers("features", {shape().batch, features_});
  batch.ids("targets", {shape().batch});
}

void Parity::write(Draws& draws, std::int64_t row, Batch& batch) const {
  const auto n = static_cast<std::size_t>(features_);
  float* const features = batch.numbers("features", {shape().batch, features_}).data() + row * features_;
  std::fill_n(features, features_, 0.0f);
  const std::uint32_t signs = draws.word();
  const double spread = 1 / std::sqrt(1 + separation_ * separation_);
  std::int32_t label = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double hidden = normal_draw(draws);
    if (i < static_cast<std::size_t>(2 * bits_)) {
      const bool minus = ((signs >> i) & 1) != 0;
      hidden = (hidden + (minus ? -separation_ : separation_)) * spread;
      if (minus) label ^= std::int32_t{1} << (i / 2);
    }
    for (std::size_t j = 0; j < n; ++j) features[j] += static_cast<float>(hidden) * rotation_[i * n + j];
  }
  batch.ids("targets")[static_cast<std::size_t>(row)] = label;
}

std::optional<double> Parity::optimum() const { return static_cast<double>(bits_) * bit_entropy(separation_); }

std::optional<double> Parity::best_accuracy() const {
  const double kept = std::erfc(-separation_ / std::numbers::sqrt2) / 2;
  return std::pow(kept * kept + (1 - kept) * (1 - kept), static_cast<double>(bits_));
}

std::string Parity::describe() const {
  return fmt::format(
      "parity: {} classes of {} numbers, signs {:.3g} deviations apart; best accuracy {:.4f}, loss {:.4f}", classes(),
      features_, 2 * separation_, *best_accuracy(), *optimum());
}

}  // namespace norma
