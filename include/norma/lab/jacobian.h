// The input-output Jacobian of a stack: how it stretches small changes of what enters it (dynamical isometry,
// Bachlechner et al. 2020).
#pragma once

#include <string>
#include <vector>

#include "norma/lab/subject.h"

namespace norma {

// Where the stack ends: with the scheme's final formula, or before it.
enum class StackEnd { after_final, before_final };

// Why a model's stack has no Jacobian to that end: every layer changes the shape of its stream, or its answers are
// pooled. Empty: it has.
std::string why_no_jacobian(const ModelConfig& model, StackEnd end);

// Which layers the Jacobian is of where the stream changes its shape on the way, "layers.0 to layers.7": the longest
// part that keeps it. Empty: of all of the last stack.
std::string jacobian_part(const ModelConfig& model);

// Mean squared singular value by member: E ||J^T v||^2 / ||v||^2 over `projections` random v.
std::vector<double> measure_isometry(const Subject& subject, StackEnd end = StackEnd::after_final, int projections = 8);

// All singular values of one sequence's Jacobian by member, largest first: time * width backward passes, `batch` at a
// time. Throws Error for more than kLargestJacobian rows, and where a norm lets the sequences of a batch touch.
inline constexpr std::int64_t kLargestJacobian = 1024;
std::vector<std::vector<double>> exact_singular_values(const Subject& subject, StackEnd end = StackEnd::after_final);

double mean_square(const std::vector<double>& values);

// Shares of values by their order of magnitude, in equal bins of log10: four to a decade, one of them around 1. What is
// smaller falls in the first bin, what is larger in the last; shares are NaN where a value is not finite.
struct LogHistogram {
  double low = -4.125, high = 4.125;
  std::vector<double> share = std::vector<double>(33, 0);
  // What is only known to lie below a value; not part of any bin.
  double unresolved = 0, unresolved_below = 0;

  void add(double value, double weight);
  void add_between(double from, double to, double weight);  // evenly over log10
};
LogHistogram log_histogram(const std::vector<double>& values);

// How the singular values of the first sequence's Jacobian are distributed, by member: all of them where there are at
// most `most_exact`, otherwise by stochastic Lanczos quadrature. From random v in and u out, `steps` iterations on J
// J^T and J^T J give two Gauss rules that share 2 * steps - 1 moments of the squared singular values with v and u;
// their mean over starts is the density of all. The weight of a node is spread half the way to its neighbours; that of
// the smallest is unresolved. A norm over the batch makes it the Jacobian of the whole batch, always by quadrature.
struct SingularValueHistogram {
  bool exact = false;
  std::vector<LogHistogram> members;
};
struct HistogramOptions {
  std::int64_t most_exact = 256;
  int steps = 40;
};
SingularValueHistogram measure_singular_values(const Subject& subject, StackEnd end = StackEnd::after_final,
                                               const HistogramOptions& options = {});

}  // namespace norma
