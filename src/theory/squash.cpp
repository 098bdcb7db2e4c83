// Moments of tanh under a Gaussian, by quadrature; of two correlated ones, by Mehler's formula: each Hermite
// coefficient is damped by its power of the correlation. tanh is odd and its derivative even, so that half of the nodes
// and half of the orders are enough.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "theory/moments.h"

namespace norma {
namespace {

constexpr std::size_t kNodes = 32, kOrders = 4;  // nodes on one side; orders 1, 3, 5, 7 or 0, 2, 4, 6
constexpr double kReach = 6;                     // standard deviations
constexpr double kSlopeReach = 12;               // where the derivative of tanh is negligible
using Line = std::array<double, kNodes>;

constexpr double kDirect = 0.01;  // below it 1 - exp(-2 x) loses digits

// Four sums side by side, which do not wait for one another.
template <typename Term>
double sum_over_nodes(Term term) {
  std::array<double, 4> sums = {};
  for (std::size_t i = 0; i < kNodes; i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += term(i + lane);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

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

double dot(const Line& a, const Line& b) {
  return sum_over_nodes([&](std::size_t i) { return a[i] * b[i]; });
}

// Of a Gaussian, for both sides together.
double weight_scale(double reach) { return 2 * 2 * reach / (std::sqrt(2 * std::numbers::pi) * 2 * kNodes); }

// Nodes up to kReach: weights, times nothing and times normalised Hermite polynomials.
struct Rule {
  Line plain = {};
  std::array<Line, kOrders> by_order = {};

  Series expand(const Line& values) const {
    Series series;
    series.total = sum_over_nodes([&](std::size_t i) { return plain[i] * values[i] * values[i]; });
    for (std::size_t order = 0; order < kOrders; ++order) {
      const double coefficient = dot(by_order[order], values);
      series.squares[order] = coefficient * coefficient;
    }
    return series;
  }
};

Rule rule_of_orders(bool odd) {
  Rule rule;
  for (std::size_t i = 0; i < kNodes; ++i) {
    const double z = node(i, kReach), weight = weight_scale(kReach) * std::exp(-z * z / 2);
    rule.plain[i] = weight;
    double previous = 0, current = 1;  // normalised Hermite polynomials
    for (std::size_t order = 0; order < 2 * kOrders; ++order) {
      if ((order % 2 == 1) == odd) rule.by_order[order / 2][i] = weight * current;
      const double n = static_cast<double>(order), next = (z * current - std::sqrt(n) * previous) / std::sqrt(n + 1);
      previous = current;
      current = next;
    }
  }
  return rule;
}

// tanh(s z) at nodes: exp(-2 s z) is a geometric series.
Line tanh_line(double s) {
  Line values;
  if (s < kDirect) {
    for (std::size_t i = 0; i < kNodes; ++i) values[i] = std::tanh(s * node(i, kReach));
    return values;
  }
  values[0] = std::exp(-s * kReach / kNodes);
  const double quotient = values[0] * values[0], fourth = (quotient * quotient) * (quotient * quotient);
  for (std::size_t i = 1; i < 4; ++i) values[i] = values[i - 1] * quotient;
  for (std::size_t i = 4; i < kNodes; ++i) values[i] = values[i - 4] * fourth;
  for (double& value : values) value = (1 - value) / (1 + value);
  return values;
}

// Where tanh(s z) is steep its derivative needs nodes that are close to one another. These are always at the same
// values of s z, so that only the Gaussian weights differ.
struct NarrowRule {
  Line squares = {};  // of the derivative
  std::array<Line, kOrders> by_power =
      {};  // the derivative, times powers of the square of the node's share of the reach

  Series expand(double reach) const {
    const Line weights = gaussian(reach);
    const double u = reach * reach;
    const double zeroth = dot(weights, by_power[0]), second = u * dot(weights, by_power[1]),
                 fourth = u * u * dot(weights, by_power[2]), sixth = u * u * u * dot(weights, by_power[3]);
    const double two = second - zeroth, four = fourth - 6 * second + 3 * zeroth,
                 six = sixth - 15 * fourth + 45 * second - 15 * zeroth;
    return {.squares = {zeroth * zeroth, two * two / 2, four * four / 24, six * six / 720},
            .total = dot(weights, squares)};
  }

 private:
  // exp(-z^2/2), from one exponential: with g = exp(-step^2), nodes that are 4 apart have quotients g^(4i + 10).
  static Line gaussian(double reach) {
    const double step = reach / kNodes, first = std::exp(-step * step / 8);
    const double first2 = first * first, first4 = first2 * first2;
    const double g = first4 * first4, g2 = g * g, g4 = g2 * g2, g8 = g4 * g4, g16 = g8 * g8;
    Line weights;
    weights[0] = weight_scale(reach) * first;
    weights[1] = weights[0] * g;
    weights[2] = weights[1] * g2;
    weights[3] = weights[2] * (g2 * g);
    std::array<double, 4> quotients = {g8 * g2, g8 * g4 * g2, g16 * g2, g16 * g4 * g2};
    for (std::size_t i = 4; i < kNodes; i += 4) {
      for (std::size_t lane = 0; lane < 4; ++lane) {
        weights[i + lane] = weights[i + lane - 4] * quotients[lane];
        quotients[lane] *= g16;
      }
    }
    return weights;
  }
};

NarrowRule narrow_rule() {
  NarrowRule rule;
  for (std::size_t i = 0; i < kNodes; ++i) {
    const double t = std::tanh(node(i, kSlopeReach)), value = 1 - t * t, share = node(i, 1);
    rule.squares[i] = value * value;
    for (std::size_t power = 0; power < kOrders; ++power)
      rule.by_power[power][i] = value * std::pow(share, 2 * static_cast<double>(power));
  }
  return rule;
}

// Of the derivative of tanh(s z).
Series slope_series(double s, const Line& squashed) {
  static const Rule even = rule_of_orders(false);
  static const NarrowRule narrow = narrow_rule();
  const double reach = kSlopeReach / std::max(s, 1e-9);
  if (reach < kReach) return narrow.expand(reach);
  Line values;
  for (std::size_t i = 0; i < kNodes; ++i) values[i] = 1 - squashed[i] * squashed[i];
  return even.expand(values);
}

}  // namespace

SquashResponse squash_response(double slope, double variance, double correlation) {
  static const Rule odd = rule_of_orders(true);
  const double s = slope * std::sqrt(std::max(0.0, variance));
  const Line squashed = tanh_line(s);
  const Series value = odd.expand(squashed), derivative = slope_series(s, squashed);
  const double square = slope * slope;
  return {.mean_slope = std::abs(slope) * std::sqrt(derivative.squares[0]),
          .output = {value.total, value.at(correlation, correlation)},
          .slope = {square * derivative.total, square * derivative.at(correlation, 1)}};
}

SquashResponse relu_response(double variance, double correlation) {
  const double rho = std::clamp(correlation, -1.0, 1.0), angle = std::acos(rho);
  const double both = (std::numbers::pi - angle) / (2 * std::numbers::pi);  // the chance that both are positive
  return {.mean_slope = 0.5,
          .output = {variance / 2, variance * (std::sin(angle) / (2 * std::numbers::pi) + rho * both)},
          .slope = {0.5, both}};
}

}  // namespace norma
