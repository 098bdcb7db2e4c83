#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "norma/models/branch_tables.h"

namespace norma {
namespace {

// The cell of a grid of `count` points that a place lies in, and how far along. NaN stays NaN.
double locate(double place, int count, int& index) {
  place = std::clamp(place, 0.0, static_cast<double>(count - 1));
  index = place > 0 ? std::max(0, std::min(static_cast<int>(place), count - 2)) : 0;
  return place - index;
}

// Numbers of a response, by where they stand in it.
struct Range {
  std::size_t begin = 0, end = 0;
};
template <std::size_t Count>
using Ranges = std::array<Range, Count>;

constexpr std::size_t kGradient = offsetof(BranchResponse, gradient_own) / sizeof(double),
                      kChange = offsetof(BranchResponse, change_own) / sizeof(double),
                      kWeight = offsetof(BranchResponse, weight_own) / sizeof(double),
                      kNoise = offsetof(BranchResponse, noise_last) / sizeof(double),
                      kNumbers = sizeof(BranchResponse) / sizeof(double),
                      kMemoryGradient = offsetof(CrossResponse, gradient_own) / sizeof(double),
                      kMemoryChange = offsetof(CrossResponse, change_own) / sizeof(double),
                      kCrossNumbers = sizeof(CrossResponse) / sizeof(double);
constexpr Ranges<1> kAll = {{{0, kNumbers}}}, kCrossAll = {{{0, kCrossNumbers}}};
constexpr Ranges<3> kForward = {{{0, kGradient}, {kChange, kWeight}, {kNoise, kNumbers}}};
constexpr Ranges<2> kBackward = {{{kGradient, kChange}, {kWeight, kNoise}}};
constexpr Ranges<4> kCrossForward = {
    {{0, kGradient}, {kChange, kWeight}, {kNoise, kNumbers}, {kMemoryChange, kCrossNumbers}}};
constexpr Ranges<3> kCrossBackward = {{{kGradient, kChange}, {kWeight, kNoise}, {kMemoryGradient, kMemoryChange}}};

// A weighted mean of points, of the numbers in some ranges.
template <const auto& ranges, typename Response, std::size_t Points>
Response mixed(const std::array<const double*, Points>& points, const std::array<double, Points>& weights) {
  std::array<double, sizeof(Response) / sizeof(double)> sum = {};
  for (const Range& range : ranges) {
    for (std::size_t n = range.begin; n < range.end; ++n) {
      for (std::size_t p = 0; p < Points; ++p) sum[n] += weights[p] * points[p][n];
    }
  }
  return std::bit_cast<Response>(sum);
}

template <const auto& ranges>
BranchResponse mixed_at(const BranchTable::Spot& spot, const std::vector<double>& numbers, int correlations) {
  const double *near = numbers.data() + static_cast<std::size_t>(spot.corner) * kNumbers,
               *far = near + static_cast<std::size_t>(correlations) * kNumbers;
  const double a = spot.scale, b = spot.correlation;
  return mixed<ranges, BranchResponse, 4>({near, near + kNumbers, far, far + kNumbers},
                                          {(1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b});
}

template <const auto& ranges>
CrossResponse mixed_at(const CrossTable::Spot& spot, const std::vector<double>& numbers, int correlations,
                       int memory_correlations) {
  const std::size_t next = static_cast<std::size_t>(memory_correlations) * kCrossNumbers;
  const double *p = numbers.data() + static_cast<std::size_t>(spot.corner) * kCrossNumbers, *q = p + next;
  const double *r = p + static_cast<std::size_t>(correlations) * next, *s = r + next;
  const double a = spot.scale, b = spot.correlation, c = spot.memory_correlation;
  const double w = (1 - a) * (1 - b), x = (1 - a) * b, y = a * (1 - b), z = a * b;
  if (memory_correlations == 1) return mixed<ranges, CrossResponse, 4>({p, q, r, s}, {w, x, y, z});
  constexpr std::size_t n = kCrossNumbers;
  return mixed<ranges, CrossResponse, 8>(
      {p, p + n, q, q + n, r, r + n, s, s + n},
      {w * (1 - c), w * c, x * (1 - c), x * c, y * (1 - c), y * c, z * (1 - c), z * c});
}

template <typename Response>
std::vector<double> flattened(const std::vector<Response>& points) {
  std::vector<double> numbers;
  for (const Response& point : points) {
    const auto flat = std::bit_cast<std::array<double, sizeof(Response) / sizeof(double)>>(point);
    numbers.insert(numbers.end(), flat.begin(), flat.end());
  }
  return numbers;
}

}  // namespace

BranchTable::BranchTable(int first_scale, int scales, int correlations, const std::vector<BranchResponse>& points)
    : first_scale_(first_scale), scales_(scales), correlations_(correlations), numbers_(flattened(points)) {
  NORMA_ASSERT(scales >= 2 && correlations >= 2);
  NORMA_ASSERT(points.size() == static_cast<std::size_t>(scales) * static_cast<std::size_t>(correlations));
}

BranchTable::Spot BranchTable::spot(double variance, double correlation) const {
  NORMA_ASSERT(!empty());
  int i = 0, j = 0;
  const double a = locate(0.5 * std::log2(variance) - first_scale_, scales_, i);
  const double b = locate(correlation * (correlations_ - 1), correlations_, j);
  return {i * correlations_ + j, a, b};
}

BranchResponse BranchTable::at(double variance, double correlation) const {
  return mixed_at<kAll>(spot(variance, correlation), numbers_, correlations_);
}
BranchResponse BranchTable::forward(const Spot& spot) const {
  return mixed_at<kForward>(spot, numbers_, correlations_);
}
BranchResponse BranchTable::backward(const Spot& spot) const {
  return mixed_at<kBackward>(spot, numbers_, correlations_);
}

CrossTable::CrossTable(int first_scale, int scales, int correlations, int memory_correlations,
                       const std::vector<CrossResponse>& points)
    : first_scale_(first_scale),
      scales_(scales),
      correlations_(correlations),
      memory_correlations_(memory_correlations),
      numbers_(flattened(points)) {
  NORMA_ASSERT(scales >= 2 && correlations >= 2 && memory_correlations >= 1);
  NORMA_ASSERT(points.size() == static_cast<std::size_t>(scales) * static_cast<std::size_t>(correlations) *
                                    static_cast<std::size_t>(memory_correlations));
}

CrossTable::Spot CrossTable::spot(double variance, double correlation, double memory_correlation) const {
  NORMA_ASSERT(!empty());
  int i = 0, j = 0, k = 0;
  const double a = locate(0.5 * std::log2(variance) - first_scale_, scales_, i);
  const double b = locate(correlation * (correlations_ - 1), correlations_, j);
  const double c = locate(memory_correlation * (memory_correlations_ - 1), memory_correlations_, k);
  return {(i * correlations_ + j) * memory_correlations_ + k, a, b, c};
}

CrossResponse CrossTable::at(double variance, double correlation, double memory_correlation) const {
  return mixed_at<kCrossAll>(spot(variance, correlation, memory_correlation), numbers_, correlations_,
                             memory_correlations_);
}
CrossResponse CrossTable::forward(const Spot& spot) const {
  return mixed_at<kCrossForward>(spot, numbers_, correlations_, memory_correlations_);
}
CrossResponse CrossTable::backward(const Spot& spot) const {
  return mixed_at<kCrossBackward>(spot, numbers_, correlations_, memory_correlations_);
}

}  // namespace norma
