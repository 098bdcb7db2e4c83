// One training step of a model as one plan: loss, gradients, their norm, the optimiser, and probes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "norma/graph/plan.h"
#include "norma/models/model.h"
#include "norma/train/groups.h"
#include "norma/train/optimiser.h"

namespace norma {

struct StepOptions {
  OptimiserConfig optimiser = {};
  bool decay_vectors = false;  // whether biases and norm gains decay
  GroupRules groups = {};
  // Batches per step: their mean gradient gathers over so many runs of the plan; `first` starts, `control.active` ends.
  std::int64_t accumulate = 1;
  bool ema = false;  // a moving mean of every parameter, in the state "<name>/ema"
  bool probes = true;
  bool fuse = true;                  // false only to compare with
  int recompute_every = 0;           // layers per recomputation segment
  Keep keep = Keep::all;             // what stays between forward and backward
  bool narrow = false;               // mixed precision: CompileOptions::narrow
  const Backend* backend = nullptr;  // that the plan is for; null: the CPU
};

// Where a probe finds its numbers after a run.
struct ProbeSite {
  enum class Kind { stream, branch, attention };
  Kind kind;
  std::string site;      // "layers.3.attn"
  std::string output;    // of the plan
  std::int64_t watched;  // elements of the stream or the branch, heads of attention
};

// "stream_rms" and "stream_max", "branch_rms", or "logit_max" and "entropy"; `output(i)` is element i of the output.
std::vector<std::pair<std::string_view, double>> read_probe(const ProbeSite& probe,
                                                            const std::function<double(std::size_t)>& output);

// Parameters of one layer, or of the embedding, the head, ..., for gradient and update rms.
struct ParameterPlace {
  std::string layer;  // "layers.3", "embedding", "head"
  double elements = 0;
};

// Inputs beside those of the model: "control" (OptimiserControl), "clip" [1], with accumulation "first" [1], and with a
// moving mean "ema_take" [1], the share of the new weights in it.
// Outputs: "loss" [1], "gradient_norm" [1], and what the probes name. Where the loss or the norm is not finite,
// parameters and optimiser states stay as they were; so every update waits for the norm, whether it clips or not.
struct TrainingStep {
  // Outputs with probes, by parameter: sums of squares of its gradient and of its change.
  static constexpr const char* kGradientSquares = "gradient_squares";
  static constexpr const char* kUpdateSquares = "update_squares";

  std::shared_ptr<const Plan> plan;
  std::vector<ParameterSpec> parameters;  // with the rules of the run
  std::vector<ParameterSpec> kept;        // what the model keeps beside them: running statistics
  std::vector<ParameterPlace> places;     // one per parameter
  std::string squares_wire;               // what kGradientSquares shows, with probes or without
  std::vector<ProbeSite> probes;
  std::vector<Schedule> schedules;  // inputs that the host writes each step
};

TrainingStep build_training_step(const ModelConfig& config, const StepOptions& options = {});

// Forward only: "loss", and "logits" [batch, time, vocabulary] when asked.
struct EvaluationStep {
  std::shared_ptr<const Plan> plan;
  std::vector<ParameterSpec> parameters;
};
EvaluationStep build_evaluation_step(const ModelConfig& config, bool logits = false, const Backend* backend = nullptr,
                                     bool narrow = false);

// The state that holds the moving mean of a parameter.
std::string ema_name(std::string_view parameter);
// Share of the weights after a step (counted from 1) in their moving mean: 1 - min(decay, (1 + step) / (10 + step)), so
// that a short run is not held back by its start.
double ema_share(double decay, std::int64_t step);

// The layer that a parameter or site belongs to: "encoder.layers.3" of "encoder.layers.3.attn.out.weight".
std::string layer_of(std::string_view name);

// The stack that a layer or site belongs to: "decoder." of "decoder.layers.3.ffn"; empty where there is one.
std::string_view stack_of(std::string_view name);

}  // namespace norma
