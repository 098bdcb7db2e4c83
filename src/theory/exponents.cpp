// How predictions go with depth.
#include <cmath>
#include <limits>
#include <utility>

#include "norma/theory/predict.h"

namespace norma {

namespace {

struct Fit {
  double slope = 0, rest = 0;  // rest: the sum of squares that the line leaves
};

Fit fit(const std::vector<double>& x, const std::vector<double>& y) {
  const double n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sx += x[i];
    sy += y[i];
    sxx += x[i] * x[i];
    sxy += x[i] * y[i];
  }
  Fit found{.slope = (n * sxy - sx * sy) / (n * sxx - sx * sx)};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double off = y[i] - sy / n - found.slope * (x[i] - sx / n);
    found.rest += off * off;
  }
  return found;
}

// Empty where one is not positive or has no end.
std::vector<double> logarithms(const std::vector<double>& values) {
  std::vector<double> logs;
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) return {};
    logs.push_back(std::log(value));
  }
  return logs;
}

}  // namespace

double log_slope(const std::vector<double>& x, const std::vector<double>& y) {
  NORMA_ASSERT(x.size() == y.size() && x.size() >= 2);
  const std::vector<double> a = logarithms(x), b = logarithms(y);
  return a.empty() || b.empty() ? std::numeric_limits<double>::quiet_NaN() : fit(a, b).slope;
}

std::optional<double> factor_a_layer(const std::vector<double>& x, const std::vector<double>& y) {
  constexpr double kCloser = 0.1, kSteep = 6;  // no power of depth is as steep
  const std::vector<double> a = logarithms(x), b = logarithms(y);
  if (a.size() < 3 || b.size() != a.size() || std::abs(b.back() - b.front()) < std::log(3)) return std::nullopt;
  const Fit power = fit(a, b), factor = fit(x, b);
  return factor.rest < kCloser * power.rest || std::abs(power.slope) > kSteep ? std::optional(std::exp(factor.slope))
                                                                              : std::nullopt;
}

std::vector<double> closing_gradients(const Prediction& prediction) {
  std::vector<double> all;
  for (const BranchTheory& branch : prediction.branches) {
    if (branch.kind == prediction.closing) all.push_back(branch.weight_gradient);
  }
  return all;
}

Exponents exponents_of(const std::vector<Prediction>& by_depth) {
  std::vector<double> n, rms, first, last, amplification;
  for (const Prediction& one : by_depth) {
    const std::vector<double> gradients = closing_gradients(one);
    n.push_back(static_cast<double>(one.layers));
    rms.push_back(one.streams.back().rms);
    first.push_back(gradients.empty() ? 0 : gradients.front());
    last.push_back(gradients.empty() ? 0 : gradients.back());
    amplification.push_back(one.amplification);
  }
  return {.stream_rms = log_slope(n, rms),
          .last_gradient = log_slope(n, last),
          .first_gradient = log_slope(n, first),
          .amplification = log_slope(n, amplification),
          .stream_factor = factor_a_layer(n, rms),
          .last_factor = factor_a_layer(n, last),
          .first_factor = factor_a_layer(n, first),
          .amplification_factor = factor_a_layer(n, amplification)};
}

}  // namespace norma
