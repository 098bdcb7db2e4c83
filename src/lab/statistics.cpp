#include "norma/lab/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "norma/core/error.h"

namespace norma {
namespace {

// I_x(a, b) / (x^a (1-x)^b / (a B(a,b))) as a continued fraction (modified Lentz).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kPrecision = 1e-15;
  const auto apart = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / apart(1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m < 10'000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / apart(1 + even * d);
    c = apart(1 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / apart(1 + odd * d);
    c = apart(1 + odd / c);
    const double change = d * c;
    value *= change;
    if (std::abs(change - 1) < kPrecision) break;
  }
  return value;
}

// The regularised incomplete beta function I_x(a, b).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double mean_of_values(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The variance of the mean of these values, if they are independent.
double variance_of_mean(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of_values(values), n = static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / (n - 1) / n;
}

// The numbers of equal pairs that are possible among so many schemes: groups of equals, j of them making j (j - 1) / 2.
std::set<std::size_t> possible_equal_pairs(std::size_t schemes) {
  std::vector<std::set<std::size_t>> possible(schemes + 1);
  possible[0] = {0};
  for (std::size_t n = 1; n <= schemes; ++n) {
    for (std::size_t group = 1; group <= n; ++group) {
      for (const std::size_t others : possible[n - group]) possible[n].insert(group * (group - 1) / 2 + others);
    }
  }
  return possible[schemes];
}

LossTable first_seeds(const LossTable& table, std::size_t count) {
  return {table.begin(), table.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

double student_tail(double t, double degrees_of_freedom) {
  NORMA_ASSERT(degrees_of_freedom > 0);
  if (std::isnan(t)) return 1;
  if (std::isinf(t)) return 0;
  return incomplete_beta(degrees_of_freedom / 2, 0.5, degrees_of_freedom / (degrees_of_freedom + t * t));
}

double student_quantile(double tail, double degrees_of_freedom) {
  NORMA_ASSERT(tail > 0 && tail < 1);
  double low = 0, high = 1;
  while (student_tail(high, degrees_of_freedom) > tail && high < 1e100) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-13 * high; ++i) {
    const double middle = (low + high) / 2;
    (student_tail(middle, degrees_of_freedom) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

Estimate CrossedMean::interval(double alpha) const {
  const double half = degrees_of_freedom > 0 ? student_quantile(alpha, degrees_of_freedom) * std::sqrt(variance) : 0;
  return {mean, mean - half, mean + half, seeds};
}

double CrossedMean::p_value() const {
  if (!(degrees_of_freedom > 0)) return 1;
  if (variance == 0) return mean == 0 ? 1 : 0;
  return student_tail(mean / std::sqrt(variance), degrees_of_freedom);
}

CrossedMean crossed_mean(const LossTable& table) {
  NORMA_ASSERT(!table.empty() && !table[0].empty());
  std::vector<double> by_seed, by_batch(table[0].size(), 0);
  for (const std::vector<double>& seed : table) {
    NORMA_ASSERT(seed.size() == by_batch.size());
    by_seed.push_back(mean_of_values(seed));
    for (std::size_t b = 0; b < seed.size(); ++b) by_batch[b] += seed[b] / static_cast<double>(table.size());
  }
  CrossedMean result{.mean = mean_of_values(by_seed), .seeds = static_cast<int>(table.size())};
  if (table.size() < 2) return result;
  const double a = variance_of_mean(by_seed), b = variance_of_mean(by_batch);
  result.variance = a + b;
  const double n = static_cast<double>(by_seed.size()), m = static_cast<double>(by_batch.size());
  const double spread = a * a / (n - 1) + (m > 1 ? b * b / (m - 1) : 0);
  result.degrees_of_freedom = spread > 0 ? result.variance * result.variance / spread : n - 1;
  return result;
}

LossTable differences(const LossTable& a, const LossTable& b) {
  NORMA_ASSERT(a.size() == b.size());
  LossTable difference = a;
  for (std::size_t s = 0; s < a.size(); ++s) {
    NORMA_ASSERT(a[s].size() == b[s].size());
    for (std::size_t i = 0; i < a[s].size(); ++i) difference[s][i] -= b[s][i];
  }
  return difference;
}

CrossedMean difference_of(const LossTable& a, const LossTable& b) {
  const std::size_t seeds = std::min(a.size(), b.size());
  return crossed_mean(differences(first_seeds(a, seeds), first_seeds(b, seeds)));
}

std::size_t most_equal_pairs(std::size_t schemes, std::size_t apart) {
  const std::size_t pairs = schemes * (schemes - 1) / 2;
  NORMA_ASSERT(schemes > 1 && apart < pairs);
  const std::set<std::size_t> possible = possible_equal_pairs(schemes);
  return *std::prev(possible.upper_bound(pairs - apart));
}

int seeds_of_comparison(std::size_t schemes, double alpha, double beside, int most) {
  NORMA_ASSERT(most >= 2);
  const double pairs = static_cast<double>(std::max<std::size_t>(1, schemes * (schemes - 1) / 2));
  std::vector<double> expense;  // of two seeds, three, ...
  for (int n = 2; n <= most; ++n)
    expense.push_back(student_quantile(alpha / pairs, n - 1) / std::sqrt(n) * (beside + n));
  const double enough = 1.05 * *std::ranges::min_element(expense);
  const auto first = std::ranges::find_if(expense, [&](double each) { return each <= enough; });
  return 2 + static_cast<int>(first - expense.begin());
}

std::vector<PairedDifference> compare_pairs(const std::vector<LossTable>& schemes, double alpha) {
  std::vector<PairedDifference> pairs;
  std::vector<CrossedMean> means;
  for (std::size_t a = 0; a < schemes.size(); ++a) {
    NORMA_ASSERT(!schemes[a].empty());
    for (std::size_t b = a + 1; b < schemes.size(); ++b) {
      means.push_back(difference_of(schemes[a], schemes[b]));
      pairs.push_back({.a = a, .b = b, .p = means.back().p_value()});
    }
  }
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return pairs[x].p < pairs[y].p; });
  bool apart = true;
  double level = alpha, adjusted = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    PairedDifference& pair = pairs[order[i]];
    const double equal = static_cast<double>(most_equal_pairs(schemes.size(), i));
    if (apart) level = alpha / equal;  // behind the first that fails, its level stands for all
    apart = apart && pair.p <= level;
    adjusted = std::max(adjusted, std::min(1.0, pair.p * equal));
    pair.adjusted_p = adjusted;
    pair.apart = apart;
    pair.level = level;
    pair.difference = means[order[i]].interval(level);
  }
  return pairs;
}

double alpha_of_look(double alpha, int look) { return std::ldexp(alpha, -look); }

Estimate log_estimate_of(std::span<const double> values) {
  std::vector<double> logs;
  for (const double value : values) {
    NORMA_ASSERT(value > 0);
    logs.push_back(std::log(value));
  }
  const Estimate log = estimate_of(logs);
  return {std::exp(log.mean), std::exp(log.low), std::exp(log.high), log.n};
}

}  // namespace norma
