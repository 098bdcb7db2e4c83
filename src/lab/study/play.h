// The rounds of a study after the map: those written down are repeated, then the planner decides, as long as the budget
// lasts.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/study/planner.h"
#include "lab/study/rounds.h"
#include "norma/lab/study.h"
#include "norma/lab/sweep.h"

namespace norma {

// A run of any round.
struct StagedOutcome {
  Stage stage = Stage::race;
  RunOutcome outcome;
  std::filesystem::path directory;
};

// Every scheme, rate, warmup and seed as one point of a sweep; a seed decides weights and order of the data.
void add_points(SweepConfig& sweep, const SchemeChoice& scheme, double lr, std::int64_t warmup,
                const std::vector<std::int64_t>& seeds);

class RoundPlayer {
 public:
  RoundPlayer(const StudyConfig& config, const StudyRequest& request, StudyObserver& observer,
              const std::atomic<bool>& stop);

  // `state` has all but what the rounds bring; `before`: what this process has spent so far, `map_tokens`: planned for
  // the map.
  void play(StudyState state, const StudyAccount& before, double map_tokens);

  const StudyState& state() const { return state_; }
  const StudyLog& log() const { return log_; }
  const std::vector<StagedOutcome>& outcomes() const { return outcomes_; }
  double tokens_planned() const;                          // of the map and all rounds
  double seconds_per_token() const;                       // as measured so far; 0: not yet
  double tokens_of_budget(double tokens_per_step) const;  // 0: it is no budget of work
  bool finals_share_tuning_data() const { return shared_data_; }
  // The optimum of the task, where the final of a scheme lies below it.
  std::optional<double> below_optimum(std::size_t scheme) const { return below_optimum_[scheme]; }

 private:
  // Only then times are written down: a study of so much work leaves the same files on every machine.
  bool is_timed() const { return config_.budget.unit == StudyBudget::Unit::seconds; }
  double tokens_left() const;
  double seconds_left() const;                                                            // of a budget of time
  std::optional<std::chrono::steady_clock::time_point> end_of(const Round& round) const;  // when it is stopped, if ever
  bool has_final_before(const Round& round) const;
  SweepConfig sweep_of(const Round& round) const;
  std::vector<RunOutcome> run_round(Round& round);
  void add_runs(const Round& round, const std::vector<RunOutcome>& outcomes);
  void judge_finals(const Round& round, const std::vector<RunOutcome>& outcomes);
  void save();

  const StudyConfig& config_;
  const StudyRequest& request_;
  StudyObserver& observer_;
  const std::atomic<bool>& stop_;
  std::vector<std::string> names_;
  StudyState state_;
  StudyLog log_;
  double map_tokens_ = 0;
  std::vector<StagedOutcome> outcomes_;
  std::vector<char> diverged_in_final_;               // by scheme
  std::vector<std::optional<double>> below_optimum_;  // likewise
  bool shared_data_ = false;
};

}  // namespace norma
