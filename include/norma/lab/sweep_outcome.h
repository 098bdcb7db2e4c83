// What became of one run of a sweep, read from its run directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "norma/core/share.h"
#include "norma/lab/course.h"
#include "norma/train/config.h"
#include "norma/train/result.h"

namespace norma {

// How far a run of a sweep has come.
enum class RunStatus { waiting, running, finished, diverged, stopped };

inline constexpr Word<RunStatus> kRunStatusWords[] = {{"waiting", RunStatus::waiting},
                                                      {"running", RunStatus::running},
                                                      {"finished", RunStatus::finished},
                                                      {"diverged", RunStatus::diverged},
                                                      {"stopped", RunStatus::stopped}};
constexpr std::span<const Word<RunStatus>> words_for(RunStatus) { return kRunStatusWords; }
inline std::string_view name_of(RunStatus status) { return word_for(words_for(status), status); }

struct LossCurve {
  std::vector<std::int64_t> step;
  std::vector<double> loss;
};

struct RunOutcome {
  std::string id;
  std::map<std::string, std::string> axes = {};  // "train.lr" -> "0.001": what tells this run from the others
  std::string scheme;
  std::int64_t layers = 0, width = 0;
  double lr = 0;
  std::int64_t warmup = 0, seed = 0, steps = 0;
  std::optional<Stage> stage = {};  // of a study; its runs have steps of their own
  std::string schedule = "cosine";
  RunStatus status = RunStatus::waiting;
  std::int64_t last_step = 0;
  double final_loss = 0;  // of the last training step; NaN when there is none
  double best_loss = 0;   // held out, or of training where nothing is; NaN when there is none
  std::optional<double> evaluation_loss = {}, best_evaluation_loss = {};
  std::optional<RightShare> accuracy =
      {};                             // of the last evaluation: right answers of a classifier, where they were counted
  std::int64_t diverged_at_step = 0;  // when diverged
  std::string diverged_because = {}, first_bad_wire = {};
  std::int64_t spikes = 0;
  std::int64_t stopped_at_step = 0;  // when successive halving gave it up
  double tokens_per_second = 0;
  std::optional<double> unigram_entropy = {};  // what a model that knows only frequencies loses
  std::optional<double> optimum = {};
  std::optional<Outcome> outcome = {};     // of a run that has ended
  LossCurve curve = {}, evaluations = {};  // of training and of held-out data

  bool diverged() const { return status == RunStatus::diverged; }
  // Its loss means nothing: the model saw what it was to predict, or is better than any can be.
  bool faulty() const { return outcome == Outcome::leaks || outcome == Outcome::below_optimum; }
  std::string verdict() const;  // "diverged at step 17: not finite"; empty for a run that has not ended
  // Came to its end, but knows no more than how frequent each token is.
  bool learned_nothing() const;
  // The held-out loss at the end, or where nothing was held out the last training loss; infinite when the run diverged,
  // was not brought to its end, or is faulty.
  double loss() const;
  // The training loss of the first step, which no update has touched; NaN when it is not known.
  double initial_loss() const;
};

// The parts that a configuration knows.
RunOutcome outcome_of(std::string id, std::map<std::string, std::string> axes, const RunConfig& config);

// Completes an outcome from the directory of its run; without one, or before its end, the run is waiting.
RunOutcome read_outcome(RunOutcome known, const std::filesystem::path& run);

}  // namespace norma
