#include "norma/lab/share.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "norma/core/error.h"

namespace norma {
namespace {

double variance_of(std::span<const double> values, double mean) {
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.size() > 1 ? squares / static_cast<double>(values.size() - 1) : 0;
}

struct Part {
  double variance = 0;  // of the mean
  double degrees = 0;
};

// Wilson's interval with as many records as the variance is worth, and Student's t with Satterthwaite's degrees.
// Where nothing varies, all answers are right or wrong, and the records say how sure that is.
Estimate interval_of(double mean, Part seeds, Part records, double count, int models, double alpha) {
  const double variance = seeds.variance + records.variance;
  if (!std::isfinite(count) && variance == 0) return {mean, mean, mean, models};
  double degrees = records.degrees;
  if (seeds.variance > 0) {
    degrees = seeds.variance * seeds.variance / seeds.degrees;
    if (records.variance > 0) degrees += records.variance * records.variance / records.degrees;
    degrees = variance * variance / degrees;
  }
  const double worth = variance > 0 ? mean * (1 - mean) / variance : count;
  const ShareInterval ends = wilson_interval({mean, worth}, student_quantile(alpha, std::max(1.0, degrees)));
  return {mean, ends.low, ends.high, models};
}

}  // namespace

std::optional<Estimate> mean_share(std::span<const RightShare> models) {
  if (models.empty()) return std::nullopt;
  const auto n = static_cast<double>(models.size());
  std::vector<double> shares;
  double mean = 0, records = models.front().records;
  for (const RightShare& one : models) {
    shares.push_back(one.value);
    mean += one.value;  // divided afterwards: a mean of ones is 1 to the last digit
    records = std::min(records, one.records);
  }
  mean /= n;
  return interval_of(mean, {variance_of(shares, mean) / n, std::max(1.0, n - 1)},
                     {mean * (1 - mean) / records, std::max(1.0, records - 1)}, records,
                     static_cast<int>(models.size()), 0.05);
}

Estimate share_of(const LossTable& right, double alpha) {
  NORMA_ASSERT(!right.empty() && !right[0].empty());
  const auto n = static_cast<double>(right.size()), m = static_cast<double>(right[0].size());
  std::vector<double> by_seed(right.size(), 0), by_record(right[0].size(), 0);
  for (std::size_t seed = 0; seed < right.size(); ++seed) {
    NORMA_ASSERT(right[seed].size() == by_record.size());
    for (std::size_t record = 0; record < by_record.size(); ++record) {
      by_seed[seed] += right[seed][record];  // divided afterwards: a share of 1 is 1 to the last digit
      by_record[record] += right[seed][record];
    }
  }
  const double mean = std::accumulate(by_seed.begin(), by_seed.end(), 0.0) / (n * m);
  for (double& share : by_seed) share /= m;
  for (double& share : by_record) share /= n;
  return interval_of(mean, {variance_of(by_seed, mean) / n, std::max(1.0, n - 1)},
                     {variance_of(by_record, mean) / m, std::max(1.0, m - 1)}, m, static_cast<int>(right.size()),
                     alpha);
}

}  // namespace norma
