// What a model does before it is built: second moments carried through its scheme's formulas give stream rms, gradients
// by layer and amplification for any depth. docs/theory.md has the rules, and where they fail.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "norma/models/branch_tables.h"
#include "norma/models/model.h"
#include "norma/schemes/branch_kinds.h"

namespace norma {

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
  std::int64_t layer = 0;
  const BranchKind* kind = nullptr;
  double rms = 0;              // of its output
  double weight_gradient = 0;  // norm of the gradient by its last matrix, for a gradient of rms 1 by the stack's output
};

// A value that is profiled before the first step (Admin), at each sublayer in order.
struct ProfiledTheory {
  std::string name;
  std::int64_t layer = 0;
  double value = 0;
};

// Of an encoder-decoder both stacks, the encoder first; its gradients are for a gradient of rms 1 by the decoder's
// output, which is the output.
struct Prediction {
  std::int64_t layers = 0;
  double input_rms = 0;                 // of the stream where it enters a stack
  const BranchKind* closing = nullptr;  // the last branch of a layer
  std::vector<StreamTheory> streams;
  std::vector<BranchTheory> branches;
  std::vector<ProfiledTheory> profiled;
  double output_rms = 0;
  // Squared change of a token of the output, brought to rms 1, over the variance of independent changes to every weight
  // of every branch of every stack. Measured the same way by measure_amplification (lab/amplification.h).
  double amplification = 0;
};

// What the scheme predicts of the model as it starts: its scheme and constants, family, depths, width, heads, hidden,
// time, norm, activation and how large its stream begins. Throws NotPredictedError for what no rule covers, Error for
// what has no meaning.
Prediction predict(const ModelConfig& model);

// The same at any depth; what takes time, the measurement of its branches, is done once.
class ModelTheory {
 public:
  explicit ModelTheory(const ModelConfig& model);
  ModelTheory(ModelTheory&&) noexcept;
  ModelTheory& operator=(ModelTheory&&) noexcept;
  ~ModelTheory();

  Prediction at(std::int64_t layers) const;  // of each stack

  // b rms(f) / (a rms(x)) at every sublayer in order, where all formulas read [norm](a x + b [norm](f(..))): moments
  // give the rms of stream and branch, the formula a and b. Empty for other schemes.
  std::vector<double> shares(const Prediction& prediction) const;

 private:
  friend Prediction predict(const ModelConfig& model);
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

// Exponents p of N^p, least squares on logarithms over the given depths: the slopes of what predict() gives.
struct Exponents {
  double stream_rms = 0;      // of x leaving the last layer
  double last_gradient = 0;   // by the last matrix of the last layer's last branch: feed-forward of a transformer
  double first_gradient = 0;  // of the first
  double amplification = 0;
  // By what each is multiplied with every further layer, where that describes it and N^p does not (factor_a_layer).
  std::optional<double> stream_factor = {}, last_factor = {}, first_factor = {}, amplification_factor = {};
};
Exponents exponents_of(const std::vector<Prediction>& by_depth);

// The gradient by the last matrix of the last branch of each layer, in order.
std::vector<double> closing_gradients(const Prediction& prediction);

// Slope of ln y over ln x; NaN where a value is not positive.
double log_slope(const std::vector<double>& x, const std::vector<double>& y);

// F of y = c F^x where it comes much closer than a power of x, or that is too steep to be one; nothing where y changes
// less than threefold.
std::optional<double> factor_a_layer(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace norma
