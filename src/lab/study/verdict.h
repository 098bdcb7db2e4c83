// From the numbers of a study to words: one verdict per scheme, and advice.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/lab/estimate.h"
#include "norma/lab/study_depths.h"
#include "norma/lab/verdict.h"

namespace norma {

// The runs of one scheme at one rate and warmup.
struct TrainedCell {
  double lr = 0;
  std::int64_t warmup = 0;
  Estimate loss;  // over the seeds that ended; n = 0: none did
  int runs = 0;
  int diverged = 0;
  int at_once = 0;                  // of these in the first step, before any update
  int not_learned = 0;              // ended no better than guessing by frequency
  int faulty = 0;                   // ended below the optimum of the task: an error of the setting
  bool extra = false;               // at a rate beyond the grid that all schemes share
  std::vector<double> losses = {};  // of the seeds that ended, in their order
  bool trains() const { return runs > 0 && diverged == 0 && not_learned == 0 && faulty == 0; }
};

// How the training of a scheme stands after all that was run.
enum class Training {
  untested,
  trains,
  late,      // at guessing level in every short run, but not in a long one
  stuck,     // at guessing level after long runs
  unclear,   // no better than guessing, and nothing ran long enough to tell
  diverges,  // every setting did, with some seed
};

// The final comparison, with seeds and held-out data that no choice has seen.
struct FinalEvidence {
  double lr = 0;
  std::int64_t warmup = 0, steps = 0;
  Estimate loss = {};                     // over seeds and held-out batches; n = 0 where a seed diverged
  std::optional<Estimate> accuracy = {};  // of classifiers, over seeds and held-out records
  int seeds = 0, diverged = 0;
  std::ptrdiff_t batches = 0;                   // held-out ones that judged it, or records where there is one batch
  bool margin = false;                          // the next larger rate of the map trains too
  bool falls = false;                           // the loss still fell when the length was last doubled
  std::vector<std::string> tied_with = {};      // titles of schemes that no interval separates it from
  std::vector<std::string> same_as = {};        // of these those with the same losses, to the last digit
  std::vector<std::string> ahead_for_now = {};  // of those behind it that may catch up when trained longer
};

// How a quantity at init changes with depth.
struct DepthLaw {
  std::optional<Exponent> exponent = {};
  std::optional<double> theory = {};  // the exponent that the theory gives
  bool zero = false;                  // it is exactly 0 at every depth
};

// Everything that a verdict may rest on.
struct SchemeEvidence {
  std::string scheme, title;
  std::int64_t layers = 0;
  std::string stack = {};  // "decoder " where there are two and the use of depth is that of one
  std::vector<TrainedCell> cells = {};
  DepthLaw gradient = {}, amplification = {}, stream = {};
  std::optional<Estimate> effective_depth = {};
  std::int64_t depth_layers = 0;          // of how many
  std::optional<Training> training = {};  // nothing: as the cells say
  std::optional<FinalEvidence> final = {};
  std::int64_t map_steps = 0;   // of the cells
  std::int64_t long_steps = 0;  // of its long runs; 0: none
  double late_loss = 0;         // of the best of these, where it trains
  // Their rates: where it stayed at guessing level, and where it was still above it.
  std::vector<double> rates_at_guessing = {}, rates_above_guessing = {};
  std::string budget_to_tell = {};  // where it is unclear, and a larger one would tell
  // Why its losses mean nothing; such a scheme is never ranked.
  std::string leak = {};                     // see causality.h
  std::optional<double> below_optimum = {};  // the optimum that a loss of it lies below

  bool faulty() const { return !leak.empty() || below_optimum; }
};

// The cell with the lowest mean loss among those that train; null when none does.
const TrainedCell* best_cell(const SchemeEvidence& evidence);
// The same among cells with, or without, warmup.
const TrainedCell* best_cell(const SchemeEvidence& evidence, bool with_warmup);

// Where nothing trains: the lowest loss among cells without divergence; null when every cell has some.
const TrainedCell* least_bad_cell(const SchemeEvidence& evidence);

// Where nothing trains the lowest loss decides, and where everything diverges the smallest rate is the least
// bad, unless it does so in its first step.
RateEdge edge_of_best(const SchemeEvidence& evidence);

// The rate that continues a grid, in ascending order, beyond one of its ends: 0.001, 0.003, 0.01 goes on with 0.03 and
// 0.0003. Nothing where there is no such end, or no such rate.
std::optional<double> rate_beyond(const std::vector<double>& rates, RateEdge edge);

Training training_of(const SchemeEvidence& evidence);
// Every run did, in its first step: no rate has a part in that.
bool diverges_at_once(const SchemeEvidence& evidence);

// Ranked: those in the final by their loss there, then those that train by their best loss in the map, then the others.
std::vector<Verdict> judge_schemes(const std::vector<SchemeEvidence>& all);

// What the advice rests on, and what is asked.
struct StudyScale {
  std::string optimiser = "adamw", data = {};
  std::int64_t width = 0, parameters = 0;
  std::int64_t tokens_per_step = 0;  // of one run
  int tuning_seeds = 1;
  int most_seeds = 0;              // that a final takes; 0: no limit
  std::string counted = "tokens";  // what a step has so many of
  bool mixed_precision = false;
  // The model that the question is about; 0: the one that was trained.
  std::int64_t asked_layers = 0, asked_width = 0;
  std::optional<double> most_frequent = {};  // share of right answers of whoever always gives the most frequent one
  std::string why_no_final = {};             // a sentence, where none was asked for or paid for
  bool judged_on_tuning_data = false;        // a single held-out batch is all there is
  // What the theory predicts there of a scheme, as a sentence; empty: nothing.
  std::function<std::string(const SchemeEvidence&)> theory = nullptr;
};
Advice advise(const std::vector<SchemeEvidence>& all, const std::vector<Verdict>& verdicts, const StudyScale& scale);

}  // namespace norma
