// One member under examination: what is known of it, and what the steps of a diagnosis hand to each other.
#pragma once

#include <memory>
#include <optional>

#include "lab/diagnose/data_test.h"
#include "lab/diagnose/signs.h"
#include "norma/lab/diagnose.h"
#include "norma/train/result.h"

namespace norma {

// How a run learns: rms of the updates of a layer over its weights, by step.
inline constexpr double kUsualUpdate = 1e-2;
inline constexpr double kHighUpdate = 0.1;    // weights are replaced in ten steps
inline constexpr double kSmallUpdate = 1e-4;  // with kHardlyMoved: nothing can have been learned
inline constexpr double kHardlyMoved = 0.05;

// Amplification by theory, of the run's scheme and of Pre-LN in the same model.
struct AmplificationPair {
  double own = kNaN, pre = kNaN;
};

struct Case {
  const RunHistory& run;
  const MemberHistory& member;
  MemberResult result;  // that of the run, or what its records make of it so far
  Signs signs;
  Diagnosis found = {};
  std::optional<AmplificationPair> amplification = {};  // once a cause has asked for it
  // Once they have been asked for; null, and why, where they could not be read again.
  std::optional<std::shared_ptr<const Source>> source = {};
  std::string no_source = {};

  double loss() const { return result.evaluation_loss.value_or(result.final_loss); }
  // What a model does that has learned nothing of its input.
  bool of_numbers() const { return !loss_unit(run.config.model).empty(); }
  const char* guessing() const { return of_numbers() ? "predicting the mean" : "guessing by frequency"; }
  const char* beyond() const { return of_numbers() ? "the mean" : "frequencies"; }
  bool adaptive() const { return member.settings.optimiser.name != OptimiserName::sgd; }
};

void add_evidence(Case& one, std::string words, double value, double against = kNaN, const SignReading& where = {});

// Null where the data are not there any more or larger than the options allow; `open_again` notes why.
std::shared_ptr<const Source> source_of(Case& one, const DiagnoseOptions& options);
std::shared_ptr<const Source> open_again(Case& one, const DiagnoseOptions& options);

// Of a run that diverged or did not learn. May find that it was the condition that was wrong: too few steps, or data
// that say nothing.
void find_cause(Case& one, const DiagnoseOptions& options);

// No model could have learned anything: every answer was the same, or every question. True: it is written down.
bool held_nothing(Case& one, const DiagnoseOptions& options);

// Causes that also spoil a run which learned something. True: it holds, and is written down.
bool rate_is_too_high(Case& one);
bool attention_is_saturated(Case& one, double share, const char* when);
bool tensor_is_not_finite(Case& one);

// What to try, for the cause that was found.
void suggest(Case& one);

// "in layers.3 at step 20".
std::string where_of(const SignReading& reading);
// In the evidence: how much more a change of the weights moves the output than that of a Pre-LN, by theory.
void add_amplification(Case& one);
// As of a formula whose branches have no part in the output.
bool no_gradient_at_all(Case& one);
bool gradients_vanish(Case& one);
bool gradients_explode(Case& one);

}  // namespace norma
