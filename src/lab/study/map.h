// The map of a study: short runs of every scheme at every rate and warmup, and at further rates where the best lies at
// an edge of those that were tried.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "lab/study/parts.h"
#include "lab/study/rounds.h"
#include "lab/study/verdict.h"
#include "norma/lab/study.h"
#include "norma/lab/sweep.h"

namespace norma {

// What its progress is measured in, tokens or what else a step has so many of.
struct MapScale {
  double tokens_per_step = 0;   // of one run
  double tokens_of_budget = 0;  // of the whole study
  std::string counted;
};

class StudyMap {
 public:
  // All must outlive it.
  StudyMap(const StudyConfig& config, const StudyRequest& request, StudyObserver& observer,
           const std::atomic<bool>& stop);

  // Every scheme with the rates of its own grid, without those that leak.
  SweepConfig sweep(const std::vector<SchemeEvidence>& evidence) const;
  // Until all have ended; what they came to is added to the evidence.
  void train(std::vector<SchemeEvidence>& evidence, const MapScale& scale);

  std::filesystem::path directory() const { return request_.directory / "sweep"; }
  const std::vector<RunOutcome>& outcomes() const { return outcomes_; }
  const std::vector<std::vector<double>>& grids() const { return grids_; }
  double tokens(double per_step) const;
  // What it took, of a study that is so many seconds old.
  StudyAccount account(double seconds, double per_step) const;

 private:
  void train_grids(std::vector<SchemeEvidence>& evidence, const MapScale& scale, const std::string& part);
  void run_grids(const std::vector<SchemeEvidence>& evidence, const MapScale& scale, const std::string& part);
  bool widen_grids(const std::vector<SchemeEvidence>& evidence);

  const StudyConfig& config_;
  const StudyRequest& request_;
  StudyObserver& observer_;
  const std::atomic<bool>& stop_;
  std::vector<std::vector<double>> grids_;  // rates of each scheme, ascending
  std::vector<RunOutcome> outcomes_;
  StudyAccount account_;
  bool only_read_ = false;  // all runs of the last round had ended before
};

}  // namespace norma
