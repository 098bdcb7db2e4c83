#include "norma/lab/estimate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "norma/core/error.h"

namespace norma {
namespace {

struct Line {
  double slope = 0, deviation = 0, r2 = 1;  // deviation: standard error of the slope; 0 for two points
};

Line fit_line(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  Line line{.slope = xy / xx};
  const double rest = std::max(0.0, yy - line.slope * xy);
  line.r2 = yy > 0 ? 1 - rest / yy : 1;
  if (x.size() > 2) line.deviation = std::sqrt(rest / (n - 2) / xx);
  return line;
}

std::optional<Exponent> fit(std::span<const double> x, std::span<const std::vector<double>> y) {
  NORMA_ASSERT(x.size() == y.size());
  if (x.size() < 2) return std::nullopt;
  const std::size_t seeds = y[0].size();
  std::vector<std::vector<double>> curves(seeds, std::vector<double>(x.size()));
  std::vector<double> mean(x.size(), 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    NORMA_ASSERT(y[i].size() == seeds);
    for (std::size_t seed = 0; seed < seeds; ++seed) {
      if (!(y[i][seed] > 0) || !std::isfinite(y[i][seed]) || !std::isfinite(x[i])) return std::nullopt;
      curves[seed][i] = std::log(y[i][seed]);
      mean[i] += curves[seed][i] / static_cast<double>(seeds);
    }
  }
  if (*std::ranges::min_element(x) == *std::ranges::max_element(x)) return std::nullopt;
  std::vector<double> slopes;
  for (const std::vector<double>& curve : curves) slopes.push_back(fit_line(x, curve).slope);
  const Estimate by_seed = estimate_of(slopes);
  const Line line = fit_line(x, mean);
  const double scatter = by_seed.high - by_seed.mean;
  double half = scatter;
  if (x.size() > 2) half = std::max(half, student_t(static_cast<int>(x.size()) - 2) * line.deviation);
  return Exponent{line.slope, line.slope - half, line.slope + half, line.r2, scatter};
}

}  // namespace

double student_t(int degrees_of_freedom) {
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                 2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  NORMA_ASSERT(degrees_of_freedom >= 1);
  const auto index = static_cast<std::size_t>(degrees_of_freedom - 1);
  return index < kTable.size() ? kTable[index] : 1.960 + 2.4 / degrees_of_freedom;
}

Estimate estimate_of(std::span<const double> values) {
  NORMA_ASSERT(!values.empty());
  const auto n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double v : values) mean += v / n;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double half =
      values.size() < 2 ? 0 : student_t(static_cast<int>(values.size()) - 1) * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half, static_cast<int>(values.size())};
}

std::vector<Estimate> estimates_of(const std::vector<std::vector<double>>& values) {
  std::vector<Estimate> result;
  for (const std::vector<double>& one : values) result.push_back(estimate_of(one));
  return result;
}

Trend trend_of(const Exponent& exponent) {
  constexpr double kNoChange = 0.05, kLevel = 0.15;  // a tenth more or less over eight times the depth; a third
  if (exponent.low > kNoChange) return Trend::grows;
  if (exponent.high < -kNoChange) return Trend::falls;
  return exponent.low > -kLevel && exponent.high < kLevel ? Trend::level : Trend::open;
}

std::optional<Exponent> power_law(std::span<const double> x, std::span<const std::vector<double>> y) {
  std::vector<double> logs;
  for (const double v : x) {
    if (!(v > 0)) return std::nullopt;
    logs.push_back(std::log(v));
  }
  return fit(logs, y);
}

std::optional<Exponent> exponential_law(std::span<const double> x, std::span<const std::vector<double>> y) {
  return fit(x, y);
}

}  // namespace norma
