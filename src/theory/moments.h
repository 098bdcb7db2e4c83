// Second moments of the wires of a formula: small symmetric matrices, and how sums act on them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "theory/theory.h"

namespace norma {

constexpr int kMostRegisters = 12;

// Where things are kept: the lower triangle of the matrix row by row, then room for sums on their way.
constexpr std::size_t kMomentPairs = static_cast<std::size_t>(kMostRegisters) * (kMostRegisters + 1) / 2;
constexpr std::size_t kMomentScratch = 2 * static_cast<std::size_t>(kMostRegisters) + 1;
constexpr std::uint8_t moment_slot(int i, int j) {
  return static_cast<std::uint8_t>(i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i);
}
constexpr std::uint8_t moment_scratch(int n) { return static_cast<std::uint8_t>(kMomentPairs + n); }

// The factors of a sum's terms, behind them 1, and behind it products of two of them where a plan asks for these.
constexpr std::uint8_t kFactorOne = kMostRegisters;
constexpr int kMostPaired = 4;  // terms
constexpr std::uint8_t paired_factor(std::size_t t, std::size_t u) {
  return static_cast<std::uint8_t>(kFactorOne + 1 + t * (t + 1) / 2 + u);  // t >= u
}
using MomentFactors = std::array<double, kFactorOne + 1 + kMostPaired*(kMostPaired + 1) / 2>;

// Of a sum with one term.
inline MomentFactors single_factor(double factor) {
  MomentFactors factors;
  factors[0] = factor;
  factors[kFactorOne] = 1;
  factors[paired_factor(0, 0)] = factor * factor;
  return factors;
}

inline void pair_factors(MomentFactors& factors, std::size_t terms) {
  for (std::size_t t = 0; t < terms; ++t) {
    for (std::size_t u = 0; u <= t; ++u) factors[paired_factor(t, u)] = (t == u ? 1 : 2) * factors[t] * factors[u];
  }
}

// One instruction on moments, planned once: each target in turn becomes, or grows by, a sum of factors times slots.
struct MomentSums {
  struct Product {
    std::uint8_t factor = 0, source = 0;
  };
  struct Sum {
    std::uint8_t target = 0, products = 0;
    bool onto = false;  // what the target holds
  };
  std::vector<Sum> sums = {};
  std::vector<Product> products = {};  // of all sums, in order
};

// Several such matrices that the same sums act on, side by side.
template <int Lanes>
class MomentMatrix {
 public:
  using Cell = std::array<double, Lanes>;

  const Cell& at(int i, int j) const { return slots_[moment_slot(i, j)]; }
  const Cell& at(int i) const { return at(i, i); }
  void set(int i, int j, const Cell& cell) { slots_[moment_slot(i, j)] = cell; }
  void set(int i, const Cell& cell) { set(i, i, cell); }

  void run(const MomentSums& planned, const MomentFactors& factors) {
    const MomentSums::Product* product = planned.products.data();
    for (const MomentSums::Sum& sum : planned.sums) {
      Cell cell = sum.onto ? slots_[sum.target] : Cell{};
      for (const MomentSums::Product* end = product + sum.products; product != end; ++product) {
        const double factor = factors[product->factor];
        const Cell& source = slots_[product->source];
        for (std::size_t lane = 0; lane < Lanes; ++lane) cell[lane] += factor * source[lane];
      }
      slots_[sum.target] = cell;
    }
  }

 private:
  std::array<Cell, kMomentPairs + kMomentScratch> slots_ = {};
};

// y = tanh(slope*x) for a Gaussian x.
struct SquashResponse {
  double mean_slope = 0;  // E y'
  Moments output;
  Moments slope;  // E y'^2, and for two tokens E y'(1) y'(2)
};
SquashResponse squash_response(double slope, double variance, double correlation);
// The same of y = max(x, 0), whose moments are known (Cho, Saul 2009): with an angle t between two tokens, cos t =
// correlation, E y(1) y(2) = v (sin t + (pi - t) cos t) / (2 pi).
SquashResponse relu_response(double variance, double correlation);

}  // namespace norma
