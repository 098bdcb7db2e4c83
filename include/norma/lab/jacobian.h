// The input-output Jacobian of a stack: how it stretches small changes of what enters it (dynamical isometry,
// Bachlechner et al. 2020).
#pragma once

#include <string>
#include <vector>

#include "norma/lab/subject.h"

namespace norma {

// Where the stack ends: with the scheme's final formula, or before it.
enum class StackEnd { after_final, before_final };

// Mean squared singular value by member: E ||J^T v||^2 / ||v||^2 over `projections` random v.
std::vector<double> measure_isometry(const Subject& subject, StackEnd end = StackEnd::after_final, int projections = 8);

// All singular values of one sequence's Jacobian by member, largest first: time * width backward passes, `batch` at a
// time. Throws Error for more than kLargestJacobian rows.
inline constexpr std::int64_t kLargestJacobian = 1024;
std::vector<std::vector<double>> exact_singular_values(const Subject& subject, StackEnd end = StackEnd::after_final);

double mean_square(const std::vector<double>& values);

// Counts of log10(value) in equal bins; what is smaller than 10^low falls in the first.
struct LogHistogram {
  double low = -4, high = 2;
  std::vector<double> share;
};
LogHistogram log_histogram(const std::vector<double>& values, double low = -4, double high = 2, int bins = 24);

}  // namespace norma
