// When are two schemes different? Losses by seed and by held-out batch, intervals that cover both, and all pairs tested
// together. docs/study.md has the formulas and what they assume.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "norma/lab/estimate.h"

namespace norma {

// Student's t with any number of degrees of freedom: the chance of a larger |t|, and the t with that chance.
double student_tail(double t, double degrees_of_freedom);
double student_quantile(double tail, double degrees_of_freedom);  // 0 < tail < 1

// Losses of one scheme, or differences of two. All seeds have the same batches.
using LossTable = std::vector<std::vector<double>>;  // [seed][batch]

// The mean of a table with crossed effects of seeds and batches. Without a second seed nothing is known of its
// variance.
struct CrossedMean {
  double mean = 0;
  double variance = 0;            // of the mean
  double degrees_of_freedom = 0;  // Satterthwaite; 0: a single seed
  int seeds = 0;
  // The interval that misses with chance `alpha`; the mean itself for one seed.
  Estimate interval(double alpha = 0.05) const;
  double p_value() const;  // that the mean is 0; 1 for one seed
};
CrossedMean crossed_mean(const LossTable& table);

// Of the same seeds, in the same order, on the same batches.
LossTable differences(const LossTable& a, const LossTable& b);
// Over the seeds that both have; tables have their seeds in the same order.
CrossedMean difference_of(const LossTable& a, const LossTable& b);

// One pair of schemes: how much more `a` loses than `b`.
struct PairedDifference {
  std::size_t a = 0, b = 0;
  Estimate difference = {};  // at the level at which the pair was decided: excludes 0 exactly when it is apart
  double p = 1;              // of this pair alone
  double adjusted_p = 1;     // Shaffer's: the smallest alpha at which it would be apart
  double level = 0.05;       // of the interval
  bool apart = false;
};

// All pairs, a < b. No two equal schemes are called apart with a chance of more than `alpha` over all of them (Shaffer
// 1986). Pairs are taken over the seeds that both have; tables have their seeds in the same order.
std::vector<PairedDifference> compare_pairs(const std::vector<LossTable>& schemes, double alpha);

// How many pairs of `schemes` schemes can be equal after `apart` of them were found to differ: of eight 28, then 21,
// since one that differs from another cannot be equal to all of its equals.
std::size_t most_equal_pairs(std::size_t schemes, std::size_t apart);

// With how many seeds each a comparison of all pairs tells most for what it takes, where `beside` other runs of the
// same length go with it: the smallest number, at most `most`, within 5 % of the least of
//   t(alpha / pairs; n - 1) / sqrt(n) * (beside + n),
// what an interval is in deviations of one seed, times what a step takes. So seeds are preferred to steps only where
// they would be even if differences grew in proportion to the length of the runs.
int seeds_of_comparison(std::size_t schemes, double alpha, double beside, int most);

// Of a comparison that is looked at again after more seeds, look 1, 2, ...: alpha / 2^look, which adds up to alpha.
double alpha_of_look(double alpha, int look);

// Middle and interval in ln y: geometric mean, and ends that are never negative. Values must be positive.
Estimate log_estimate_of(std::span<const double> values);

}  // namespace norma
