// From the numbers of a study to words: one verdict per scheme, and advice.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/lab/estimate.h"
#include "norma/lab/verdict.h"

namespace norma {

// The runs of one scheme at one rate and warmup.
struct TrainedCell {
  double lr = 0;
  std::int64_t warmup = 0;
  Estimate loss;  // over the seeds that ended; n = 0: none did
  int runs = 0;
  int diverged = 0;
  int not_learned = 0;  // ended no better than guessing by frequency
  bool extra = false;   // at a rate beyond the grid that all schemes share
  bool trains() const { return runs > 0 && diverged == 0 && not_learned == 0; }
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
  std::string stack = {};  // "decoder " where there are two and `layers` is of one
  std::vector<TrainedCell> cells = {};
  DepthLaw gradient = {}, amplification = {}, stream = {};
  std::optional<Estimate> effective_depth = {};
};

// The cell with the lowest mean loss among those that train; null when none does.
const TrainedCell* best_cell(const SchemeEvidence& evidence);
// The same among cells with, or without, warmup.
const TrainedCell* best_cell(const SchemeEvidence& evidence, bool with_warmup);

// Where nothing trains the lowest loss decides, and where everything diverges the smallest rate is the least bad.
RateEdge edge_of_best(const SchemeEvidence& evidence);

// The rate that continues a grid, in ascending order, beyond one of its ends: 0.001, 0.003, 0.01 goes on with 0.03 and
// 0.0003. Nothing where there is no such end, or no such rate.
std::optional<double> rate_beyond(const std::vector<double>& rates, RateEdge edge);

// Ranked: those that train by their best loss, then the others.
std::vector<Verdict> judge_schemes(const std::vector<SchemeEvidence>& all);

// `optimiser` is the one that trained all runs.
Advice advise(const std::vector<SchemeEvidence>& all, const std::vector<Verdict>& verdicts, int seeds,
              std::string_view optimiser);

}  // namespace norma
