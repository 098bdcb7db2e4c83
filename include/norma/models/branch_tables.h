// How branches answer: what the theory must know of them, as numbers, and what of a scheme decides it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "norma/core/error.h"
#include "norma/schemes/scheme.h"

namespace norma {

// A formula that is right but holds something that no rule covers; the message names it.
class NotPredictedError : public Error {
 public:
  using Error::Error;
};

// Second moments per element of a wire [time, width], averaged over tokens: of one token with itself, and of two
// different tokens with one another.
struct Moments {
  double own = 0;
  double shared = 0;
};

// How a branch answers an input of rms s whose tokens have correlation rho. Gradients and changes are linear, so what
// they do to second moments is known from two probes: one that is independent for every token (`own`) and one that is
// the same for all tokens (`shared`), each of variance 1.
struct BranchResponse {
  Moments output;                            // over s^2
  Moments gradient_own, gradient_shared;     // by the input, for a gradient by the output
  Moments change_own, change_shared;         // of the output, for a change of the input
  double weight_own = 0, weight_shared = 0;  // squared norm of the gradient by the last matrix, over s^2
  // Of the output, over s^2, when weights change by independent numbers of variance 1: the last matrix; the first
  // (feed-forward) or the values (attention); queries and keys.
  Moments noise_last, noise_first, noise_scores;
};

// Responses on a grid, between whose points they are interpolated; beyond its scales a branch counts as homogeneous.
class BranchTable {
 public:
  BranchTable() = default;
  // Scales are 2^first_scale, 2^(first_scale + 1), ...; correlations are i / (correlations - 1). Points by scale, then
  // correlation.
  BranchTable(int first_scale, int scales, int correlations, const std::vector<BranchResponse>& points);

  bool empty() const { return numbers_.empty(); }
  BranchResponse at(double variance, double correlation) const;

  // A place between points.
  struct Spot {
    int corner = 0;                     // the first point around it
    double scale = 0, correlation = 0;  // how far beyond it
  };
  Spot spot(double variance, double correlation) const;
  BranchResponse forward(const Spot& spot) const;   // outputs, changes and noise; the rest is zero
  BranchResponse backward(const Spot& spot) const;  // gradients; the rest is zero

 private:
  int first_scale_ = 0, scales_ = 0, correlations_ = 0;
  std::vector<double> numbers_;  // of all points
};

// How cross-attention answers queries and a memory that both have rms s, whose tokens have correlations of their own.
struct CrossResponse {
  BranchResponse query = {};                        // of gradients and changes: by the queries' input alone
  Moments gradient_own = {}, gradient_shared = {};  // by the memory, for a gradient by the output
  Moments change_own = {}, change_shared = {};      // of the output, for a change of the memory
};

// The same grid with one more axis; other pairs of sizes follow by scaling.
class CrossTable {
 public:
  CrossTable() = default;
  // Points by scale, then correlation of the queries, then of the memory.
  CrossTable(int first_scale, int scales, int correlations, int memory_correlations,
             const std::vector<CrossResponse>& points);

  bool empty() const { return numbers_.empty(); }
  CrossResponse at(double variance, double correlation, double memory_correlation) const;

  struct Spot {
    int corner = 0;
    double scale = 0, correlation = 0, memory_correlation = 0;
  };
  Spot spot(double variance, double correlation, double memory_correlation) const;
  CrossResponse forward(const Spot& spot) const;
  CrossResponse backward(const Spot& spot) const;

 private:
  int first_scale_ = 0, scales_ = 0, correlations_ = 0, memory_correlations_ = 0;
  std::vector<double> numbers_;
};

// Of one block with Xavier gains 1; other gains follow by scaling. A branch whose output goes straight into a norm is
// measured together with it: the norm divides each token by its own rms, which a mean over tokens cannot tell.
struct BranchTables {
  using ByKind = std::map<std::string, BranchTable, std::less<>>;  // keys of branches

  ByKind plain = {};
  ByKind normed = {};     // empty: the rule for norms is applied to the plain ones
  std::int64_t time = 0;  // tokens that they were measured with
  // Where scores are carried: attention with its two uses of x apart, queries and keys as `query`, values as the
  // memory.
  CrossTable apart = {};
};

// Of the two stacks of an encoder-decoder.
struct EncoderDecoderTables {
  BranchTables encoder = {}, decoder = {};
  CrossTable cross = {}, cross_normed = {};
};

// Whether a formula of the scheme applies a norm directly to a branch, and of which kind ("norm", "rmsnorm"); "" if
// not.
std::string norm_on_branches(const Scheme& scheme);

// The same scheme with the options that its calls give in the tables of its branches. Throws NotPredictedError where
// two calls of one branch differ in them.
Scheme with_options_in_tables(const Scheme& scheme);

}  // namespace norma
