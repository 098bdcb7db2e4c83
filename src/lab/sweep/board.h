// What the cohorts of a sweep share while they train side by side: the observer, which hears one of them at a time, the
// counts of the whole, the clock, and the word to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "norma/lab/sweep.h"

namespace norma {

class SweepBoard {
 public:
  using Clock = std::chrono::steady_clock;

  SweepBoard(SweepObserver& observer, const std::atomic<bool>& stop, std::optional<Clock::time_point> until)
      : observer_(observer), stop_(stop), until_(until) {}

  // Before the first cohort begins. Work is counted in operations.
  void planned(std::int64_t runs, std::int64_t ended, int cohorts, double work);
  bool all_had_ended() const { return ended_before_ == progress_.runs; }

  // Asked to stop, its time is up, or a cohort has failed.
  bool stopping() const { return stop_ || failed_ || (until_ && Clock::now() >= *until_); }
  void fail() { failed_ = true; }

  int begin_cohort();  // its number, counted from 1
  void started(int number, std::int64_t until, const Cohort& cohort);
  void stepped(int number, std::int64_t until, const Cohort& cohort);
  void happened(const SweepCell& cell, const MemberEvent& event);
  void warned(const std::string& what);
  void ended(const RunOutcome& outcome);

  double seconds() const;  // since the first cohort began; 0 before

 private:
  SweepProgress progress_of(int number, std::int64_t until) const;

  SweepObserver& observer_;
  const std::atomic<bool>& stop_;
  const std::optional<Clock::time_point> until_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  SweepProgress progress_;
  std::int64_t ended_before_ = 0;
  double work_done_ = 0, work_left_ = 0;
  std::optional<Clock::time_point> began_;
  std::set<std::string> warned_;
};

}  // namespace norma
