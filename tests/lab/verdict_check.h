// Made-up evidence of schemes, for verdicts, advice and tables.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/study/parts.h"
#include "lab/study/verdict.h"
#include "norma/lab/study.h"

namespace norma::test {

inline Estimate around(double mean, double half) { return {mean, mean - half, mean + half, 3}; }

inline TrainedCell trains(double lr, std::int64_t warmup, double loss, double half = 0.01) {
  return {.lr = lr, .warmup = warmup, .loss = around(loss, half), .runs = 3, .diverged = 0, .not_learned = 0};
}
inline TrainedCell fails(double lr, std::int64_t warmup, int diverged) {
  return {.lr = lr, .warmup = warmup, .loss = {}, .runs = 3, .diverged = diverged, .not_learned = 3 - diverged};
}

inline SchemeEvidence evidence(const std::string& name, std::vector<TrainedCell> cells) {
  return {.scheme = name, .title = name, .layers = 12, .cells = std::move(cells)};
}

inline std::string_view verdict_of(const SchemeEvidence& one) { return name_of(judge_schemes({one})[0].verdict); }

inline SchemeEvidence finalist(const std::string& name, double loss, std::vector<TrainedCell> cells,
                               std::vector<std::string> tied = {}) {
  SchemeEvidence one = evidence(name, std::move(cells));
  one.final =
      FinalEvidence{.lr = 1e-3, .warmup = 40, .steps = 800, .loss = around(loss, 0.1), .seeds = 5, .margin = true};
  one.final->tied_with = std::move(tied);
  return one;
}

inline RunOutcome ended(const std::string& scheme, Outcome outcome, double loss) {
  RunOutcome run{.id = scheme, .scheme = scheme, .layers = 12, .lr = 1e-3};
  run.status = RunStatus::finished;
  run.outcome = outcome;
  run.evaluation_loss = loss;
  run.unigram_entropy = 3;
  run.optimum = 1;
  return run;
}

}  // namespace norma::test
