// From the numbers of a study to words: one verdict per scheme, and advice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "norma/lab/estimate.h"

namespace norma {

// The runs of one scheme at one rate and warmup.
struct TrainedCell {
  double lr = 0;
  std::int64_t warmup = 0;
  Estimate loss;  // over the seeds that ended; n = 0: none did
  int runs = 0;
  int diverged = 0;
  int not_learned = 0;  // ended no better than guessing by frequency
  bool trains() const { return runs > 0 && diverged == 0 && not_learned == 0; }
};

// Everything that a verdict may rest on.
struct SchemeEvidence {
  std::string scheme, title;
  std::int64_t layers = 0;
  std::vector<TrainedCell> cells = {};
  std::optional<Exponent> gradient = {}, amplification = {}, stream = {};  // exponents at init
  std::optional<Estimate> effective_depth = {};
};

struct EvidenceItem {
  std::string text;
  double value = 0;
};

struct Verdict {
  std::string scheme;
  int rank = 0;
  std::string verdict = {};  // "stable", "needs warmup", "does not train", "unstable", "untested"
  std::string words = {};
  std::vector<EvidenceItem> evidence = {};
};

// The cell with the lowest mean loss among those that train; null when none does.
const TrainedCell* best_cell(const SchemeEvidence& evidence);
// The same among cells with, or without, warmup.
const TrainedCell* best_cell(const SchemeEvidence& evidence, bool with_warmup);

// Ranked: those that train by their best loss, then the others.
std::vector<Verdict> judge_schemes(const std::vector<SchemeEvidence>& all);

struct Advice {
  std::string words, confidence;
  std::vector<std::string> ranking, not_tested;
};
Advice advise(const std::vector<SchemeEvidence>& all, const std::vector<Verdict>& verdicts, int seeds);

}  // namespace norma
