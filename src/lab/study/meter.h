// A sweep of a study under way: tells the study's observer, and counts what was trained.
#pragma once

#include <chrono>
#include <string>

#include "norma/lab/study.h"
#include "norma/lab/sweep.h"

namespace norma {

// What a sweep takes of a budget in tokens: what went before, its own, and all there is; 0 where the budget is another.
struct BudgetShare {
  double before = 0, own = 0, all = 0;
  std::string counted = "tokens";  // what a step has so many of
};

class SweepMeter final : public SweepObserver {
 public:
  SweepMeter(StudyObserver& observer, std::string part, const BudgetShare& budget = {})
      : observer_(observer), part_(std::move(part)), budget_(budget) {}

  void planned(std::int64_t runs, std::int64_t ended, int cohorts) override;
  void warned(const std::string& what) override { observer_.said("warning: " + what); }
  void stepped(const SweepProgress& progress, const Cohort& cohort) override;

  void report() const;                       // says what was trained in what time
  double tokens() const { return tokens_; }  // of members that had not diverged
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  StudyObserver& observer_;
  std::string part_;
  BudgetShare budget_;
  double tokens_ = 0;
  Clock::time_point began_ = Clock::now();
};

}  // namespace norma
