// A sweep of a study under way: tells the study's observer, and counts what was trained.
#pragma once

#include <chrono>
#include <string>

#include "norma/lab/study.h"
#include "norma/lab/sweep.h"

namespace norma {

class SweepMeter final : public SweepObserver {
 public:
  SweepMeter(StudyObserver& observer, std::string part) : observer_(observer), part_(std::move(part)) {}

  void planned(std::int64_t runs, std::int64_t ended, int cohorts) override;
  void warned(const std::string& what) override { observer_.said("warning: " + what); }
  void stepped(const SweepProgress& progress, const Cohort& cohort) override;

  double tokens() const { return tokens_; }  // of members that had not diverged
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  StudyObserver& observer_;
  std::string part_;
  double tokens_ = 0;
  Clock::time_point began_ = Clock::now();
};

}  // namespace norma
