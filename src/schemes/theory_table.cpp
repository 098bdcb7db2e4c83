#include <algorithm>
#include <bit>
#include <cmath>

#include "norma/schemes/theory.h"

namespace norma {
namespace {

constexpr std::size_t kNumbers = sizeof(BranchResponse) / sizeof(double);
using Flat = std::array<double, kNumbers>;
constexpr std::size_t kCrossNumbers = sizeof(CrossResponse) / sizeof(double);
using CrossFlat = std::array<double, kCrossNumbers>;

// The cell of a grid of `count` points that a place lies in, and how far along.
double locate(double place, int count, int& index) {
  place = std::clamp(place, 0.0, static_cast<double>(count - 1));
  index = std::max(0, std::min(static_cast<int>(place), count - 2));
  return place - index;
}

}  // namespace

BranchTable::BranchTable(int first_scale, int scales, int correlations, std::vector<BranchResponse> points)
    : first_scale_(first_scale), scales_(scales), correlations_(correlations), points_(std::move(points)) {
  NORMA_ASSERT(scales >= 2 && correlations >= 2);
  NORMA_ASSERT(points_.size() == static_cast<std::size_t>(scales) * static_cast<std::size_t>(correlations));
}

BranchResponse BranchTable::at(double variance, double correlation) const {
  NORMA_ASSERT(!empty());
  int i = 0, j = 0;
  const double a = locate(0.5 * std::log2(variance) - first_scale_, scales_, i);
  const double b = locate(correlation * (correlations_ - 1), correlations_, j);
  const BranchResponse* corner = &points_[static_cast<std::size_t>(i * correlations_ + j)];
  const Flat p00 = std::bit_cast<Flat>(corner[0]), p01 = std::bit_cast<Flat>(corner[1]);
  const Flat p10 = std::bit_cast<Flat>(corner[correlations_]), p11 = std::bit_cast<Flat>(corner[correlations_ + 1]);
  const double w00 = (1 - a) * (1 - b), w01 = (1 - a) * b, w10 = a * (1 - b), w11 = a * b;
  Flat mixed;
  for (std::size_t n = 0; n < kNumbers; ++n) mixed[n] = w00 * p00[n] + w01 * p01[n] + w10 * p10[n] + w11 * p11[n];
  return std::bit_cast<BranchResponse>(mixed);
}

CrossTable::CrossTable(int first_scale, int scales, int correlations, int memory_correlations,
                       std::vector<CrossResponse> points)
    : first_scale_(first_scale),
      scales_(scales),
      correlations_(correlations),
      memory_correlations_(memory_correlations),
      points_(std::move(points)) {
  NORMA_ASSERT(scales >= 2 && correlations >= 2 && memory_correlations >= 1);
  NORMA_ASSERT(points_.size() == static_cast<std::size_t>(scales) * static_cast<std::size_t>(correlations) *
                                     static_cast<std::size_t>(memory_correlations));
}

CrossResponse CrossTable::at(double variance, double correlation, double memory_correlation) const {
  NORMA_ASSERT(!empty());
  int i = 0, j = 0, k = 0;
  const double a = locate(0.5 * std::log2(variance) - first_scale_, scales_, i);
  const double b = locate(correlation * (correlations_ - 1), correlations_, j);
  const double c = locate(memory_correlation * (memory_correlations_ - 1), memory_correlations_, k);
  CrossFlat mixed = {};
  for (int corner = 0; corner < (memory_correlations_ > 1 ? 8 : 4); ++corner) {
    const int u = corner & 1, v = corner >> 1 & 1, w = corner >> 2;
    const double weight = (u == 1 ? a : 1 - a) * (v == 1 ? b : 1 - b) * (w == 1 ? c : 1 - c);
    const int index = ((i + u) * correlations_ + j + v) * memory_correlations_ + k + w;
    const CrossFlat point = std::bit_cast<CrossFlat>(points_[static_cast<std::size_t>(index)]);
    for (std::size_t n = 0; n < kCrossNumbers; ++n) mixed[n] += weight * point[n];
  }
  return std::bit_cast<CrossResponse>(mixed);
}

}  // namespace norma
