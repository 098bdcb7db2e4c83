// What a formula predicts before anything is built: second moments carried through it give stream rms, gradients by
// layer and amplification for any depth. See docs/theory.md for the rules and where they fail.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "norma/norms/norm.h"
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
  BranchTable attention = {}, ffn = {};
  BranchTable attention_normed = {}, ffn_normed = {};  // empty: the rule for norms is applied to the plain ones
  std::int64_t time = 0;                               // tokens that they were measured with
  // Where scores are carried: attention with its two uses of x apart, queries and keys as `query`, values as the
  // memory.
  CrossTable attention_split = {};
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

struct TheoryConfig {
  std::int64_t layers = 12;
  std::int64_t width = 512;
  std::int64_t heads = 8;
  std::int64_t hidden = 0;  // of the feed-forward branch; 0: four times the width
  NormKind norm = NormKind::layer;
  Moments input = {1, 0};  // of x where it enters the stack
  // Of an encoder-decoder, whose decoder is described above:
  std::int64_t encoder_layers = 0;  // 0: as many as layers
  Moments source = {1, 0};          // of x where it enters the encoder
};

// After each formula of the stack (a sublayer, or a whole layer), in order.
struct StreamTheory {
  std::int64_t layer = 0;   // from 1
  double rms = 0;           // of x, leaving the formula
  double correlation = 0;   // of two tokens of x
  double gradient_rms = 0;  // by x where it enters the formula (of several copies: when all of them move as one), for a
                            // gradient of rms 1 by the stack's output
};

// Each branch that ran, in order.
struct BranchTheory {
  enum class Kind { attention, ffn, cross };
  std::int64_t layer = 0;
  Kind kind = Kind::attention;
  double rms = 0;              // of its output
  double weight_gradient = 0;  // norm of the gradient by its last matrix, for a gradient of rms 1 by the stack's output
};

// A value that is profiled before the first step (Admin), at each sublayer in order.
struct ProfiledTheory {
  std::string name;
  std::int64_t layer = 0;
  double value = 0;
};

struct Theory {
  std::vector<StreamTheory> streams;
  std::vector<BranchTheory> branches;
  std::vector<ProfiledTheory> profiled;
  double output_rms = 0;
  // Variance of the output's change, over that of independent changes to every weight of every branch.
  double amplification = 0;
};

// Throws NotPredictedError for what no rule covers, Error for what has no meaning.
void check_predicted(const Scheme& scheme, const TheoryConfig& config);  // needs no branches

// The same errors.
Theory predict(const Scheme& scheme, const BranchTables& branches, const TheoryConfig& config);

// Both stacks of an encoder-decoder. The encoder's gradients are for a gradient of rms 1 by the decoder's output; the
// decoder's amplification counts the weights of both stacks, the encoder's is that of what the decoder reads.
struct EncoderDecoderTheory {
  Theory encoder, decoder;
};
void check_predicted_encoder_decoder(const Scheme& scheme, const TheoryConfig& config);
EncoderDecoderTheory predict(const Scheme& scheme, const EncoderDecoderTables& branches, const TheoryConfig& config);

// Exponents p of N^p, least squares on logarithms over the given depths.
struct Exponents {
  double stream_rms = 0;      // of x leaving the last layer
  double last_gradient = 0;   // by the last matrix of the last feed-forward branch
  double first_gradient = 0;  // of the first
  double amplification = 0;
};
Exponents fit_exponents(const Scheme& scheme, const BranchTables& branches, TheoryConfig config,
                        const std::vector<std::int64_t>& depths);
// Both stacks equally deep. Stream and last gradient are the decoder's; the first gradient is the encoder's.
Exponents fit_exponents(const Scheme& scheme, const EncoderDecoderTables& branches, TheoryConfig config,
                        const std::vector<std::int64_t>& depths);

// Slope of ln y over ln x; NaN where a value is not positive.
double log_slope(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace norma
