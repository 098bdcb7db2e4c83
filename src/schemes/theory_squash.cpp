// Moments of tanh under a Gaussian, by quadrature; of two correlated ones, by Mehler's formula: each Hermite
// coefficient is damped by its power of the correlation.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "schemes/theory_moments.h"

namespace norma {
namespace {

constexpr int kNodes = 64, kOrders = 8;
constexpr double kReach = 6;  // standard deviations

struct Series {
  std::array<double, kOrders> squares = {};  // of the Hermite coefficients
  double total = 0;                          // E g^2

  // E g(a) g(b); the orders that were left out count as one more.
  double at(double correlation) const {
    double sum = 0, power = 1, left = total;
    for (const double square : squares) {
      sum += square * power;
      left -= square;
      power *= correlation;
    }
    return sum + std::max(0.0, left) * power;
  }
};

// `reach`: beyond it the function is negligible.
template <typename Function>
Series expand(double reach, Function function) {
  Series series;
  std::array<double, kOrders> coefficients = {};
  const double mass = std::sqrt(2 * std::numbers::pi) * kNodes / (2 * reach);
  for (int i = 0; i < kNodes; ++i) {
    const double z = reach * (2.0 * (i + 0.5) / kNodes - 1), weight = std::exp(-z * z / 2), value = function(z);
    series.total += weight * value * value;
    double previous = 0, current = 1;  // normalised Hermite polynomials
    for (int order = 0; order < kOrders; ++order) {
      coefficients[static_cast<std::size_t>(order)] += weight * value * current;
      const double next = (z * current - std::sqrt(static_cast<double>(order)) * previous) / std::sqrt(order + 1.0);
      previous = current;
      current = next;
    }
  }
  series.total /= mass;
  for (std::size_t order = 0; order < kOrders; ++order)
    series.squares[order] = coefficients[order] * coefficients[order] / (mass * mass);
  return series;
}

}  // namespace

SquashResponse squash_response(double slope, double variance, double correlation) {
  const double s = slope * std::sqrt(std::max(0.0, variance));
  const Series value = expand(kReach, [&](double z) { return std::tanh(s * z); });
  const Series derivative = expand(std::min(kReach, 12 / std::max(s, 1e-9)), [&](double z) {
    const double t = std::tanh(s * z);
    return slope * (1 - t * t);
  });
  return {.mean_slope = std::sqrt(derivative.squares[0]),
          .output = {value.total, value.at(correlation)},
          .slope = {derivative.total, derivative.at(correlation)}};
}

}  // namespace norma
