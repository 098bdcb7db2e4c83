// Moments of tanh under a Gaussian, by quadrature; of two correlated ones, by Mehler's formula: each Hermite
// coefficient is damped by its power of the correlation. tanh is odd and its derivative even, so that half of the nodes
// and half of the orders are enough.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "schemes/theory_moments.h"

namespace norma {
namespace {

constexpr std::size_t kNodes = 32, kOrders = 4;  // nodes on one side; orders 1, 3, 5, 7 or 0, 2, 4, 6
constexpr double kReach = 6;                     // standard deviations
constexpr double kSlopeReach = 12;               // where the derivative of tanh is negligible
using Line = std::array<double, kNodes>;

constexpr double kDirect = 0.01;  // below it 1 - exp(-2 x) loses digits

struct Series {
  std::array<double, kOrders> squares = {};  // of the Hermite coefficients
  double total = 0;                          // E g^2

  // E g(a) g(b); the orders that were left out count as one more. `first`: the correlation to the power of the first.
  double at(double correlation, double first) const {
    const double square = correlation * correlation;
    double sum = 0, power = first, left = total;
    for (const double each : squares) {
      sum += each * power;
      left -= each;
      power *= square;
    }
    return sum + std::max(0.0, left) * (square * square) * (square * square);
  }
};

double node(std::size_t i, double reach) { return reach * (static_cast<double>(i) + 0.5) / kNodes; }

// Weights of a quadrature, times nothing and times normalised Hermite polynomials.
struct Rule {
  Line plain = {};
  std::array<Line, kOrders> by_order = {};

  Series expand(const Line& values) const {
    Series series;
    for (std::size_t i = 0; i < kNodes; ++i) series.total += plain[i] * values[i] * values[i];
    for (std::size_t order = 0; order < kOrders; ++order) {
      double sum = 0;
      for (std::size_t i = 0; i < kNodes; ++i) sum += by_order[order][i] * values[i];
      series.squares[order] = sum * sum;
    }
    return series;
  }
};

// Orders 0, 2, 4, 6 from weights; He_(n+2) = (z^2 - 2n - 1) He_n - n (n - 1) He_(n-2).
Rule even_rule(const Line& weights, double reach) {
  Rule rule{.plain = weights};
  for (std::size_t i = 0; i < kNodes; ++i) {
    const double z = node(i, reach), u = z * z;
    const double second = u - 1, fourth = (u - 5) * second - 2, sixth = (u - 9) * fourth - 12 * second;
    rule.by_order[0][i] = weights[i];
    rule.by_order[1][i] = weights[i] * second * std::numbers::sqrt2 / 2;  // over the root of n!
    rule.by_order[2][i] = weights[i] * fourth * 0.20412414523193150;
    rule.by_order[3][i] = weights[i] * sixth * 0.037267799624996496;
  }
  return rule;
}

// Orders 1, 3, 5, 7.
Rule odd_rule(const Line& weights, double reach) {
  Rule rule{.plain = weights};
  for (std::size_t i = 0; i < kNodes; ++i) {
    const double z = node(i, reach), u = z * z;
    const double third = u - 3, fifth = (u - 7) * third - 6, seventh = (u - 11) * fifth - 20 * third;
    const double each = weights[i] * z;
    rule.by_order[0][i] = each;
    rule.by_order[1][i] = each * third * 0.40824829046386302;
    rule.by_order[2][i] = each * fifth * 0.091287092917527686;
    rule.by_order[3][i] = each * seventh * 0.014085904245475276;
  }
  return rule;
}

// Of a Gaussian, for both sides together.
double weight_scale(double reach) { return 2 * 2 * reach / (std::sqrt(2 * std::numbers::pi) * 2 * kNodes); }

Line fixed_weights() {
  Line weights;
  for (std::size_t i = 0; i < kNodes; ++i)
    weights[i] = weight_scale(kReach) * std::exp(-node(i, kReach) * node(i, kReach) / 2);
  return weights;
}

// exp(-z^2/2) for nodes that are not known before: quotients of neighbours have a constant quotient.
Line gaussian_weights(double reach) {
  const double step = reach / kNodes, change = std::exp(-step * step);
  Line weights;
  double weight = weight_scale(reach) * std::exp(-step * step / 8), quotient = change;
  for (double& each : weights) {
    each = weight;
    weight *= quotient;
    quotient *= change;
  }
  return weights;
}

// tanh(s z) at nodes: exp(-2 s z) is a geometric series.
Line tanh_line(double s) {
  Line values;
  if (s < kDirect) {
    for (std::size_t i = 0; i < kNodes; ++i) values[i] = std::tanh(s * node(i, kReach));
    return values;
  }
  const double step = 2 * s * kReach / kNodes, quotient = std::exp(-4 * step);
  for (std::size_t i = 0; i < 4; ++i) values[i] = std::exp(-step * (static_cast<double>(i) + 0.5));
  for (std::size_t i = 4; i < kNodes; ++i) values[i] = values[i - 4] * quotient;
  for (double& value : values) value = (1 - value) / (1 + value);
  return values;
}

Line slope_line() {
  Line values;
  for (std::size_t i = 0; i < kNodes; ++i) {
    const double t = std::tanh(node(i, kSlopeReach));
    values[i] = 1 - t * t;
  }
  return values;
}

// The derivative of tanh(s z); where s is large, its nodes are drawn together.
Series slope_series(double s, const Line& squashed) {
  static const Rule fixed = even_rule(fixed_weights(), kReach);
  static const Line narrow = slope_line();
  const double reach = kSlopeReach / std::max(s, 1e-9);
  if (reach < kReach) return even_rule(gaussian_weights(reach), reach).expand(narrow);
  Line values;
  for (std::size_t i = 0; i < kNodes; ++i) values[i] = 1 - squashed[i] * squashed[i];
  return fixed.expand(values);
}

}  // namespace

SquashResponse squash_response(double slope, double variance, double correlation) {
  static const Rule odd = odd_rule(fixed_weights(), kReach);
  const double s = slope * std::sqrt(std::max(0.0, variance));
  const Line squashed = tanh_line(s);
  const Series value = odd.expand(squashed), derivative = slope_series(s, squashed);
  const double square = slope * slope;
  return {.mean_slope = std::abs(slope) * std::sqrt(derivative.squares[0]),
          .output = {value.total, value.at(correlation, correlation)},
          .slope = {square * derivative.total, square * derivative.at(correlation, 1)}};
}

}  // namespace norma
