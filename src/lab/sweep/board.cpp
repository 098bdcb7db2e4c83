#include "lab/sweep/board.h"

#include <algorithm>
#include <limits>

namespace norma {

void SweepBoard::planned(std::int64_t runs, std::int64_t ended, int cohorts, double work) {
  progress_.runs = runs;
  progress_.ended = ended_before_ = ended;
  progress_.cohorts = cohorts;
  work_left_ = work;
  observer_.planned(runs, ended, cohorts);
}

int SweepBoard::begin_cohort() {
  const std::lock_guard lock(mutex_);
  if (!began_) began_ = Clock::now();
  ++progress_.cohort;
  progress_.cohorts = std::max(progress_.cohorts, progress_.cohort);
  return progress_.cohort;
}

double SweepBoard::seconds() const {
  return began_ ? std::chrono::duration<double>(Clock::now() - *began_).count() : 0;
}

SweepProgress SweepBoard::progress_of(int number, std::int64_t until) const {
  SweepProgress progress = progress_;
  progress.cohort = number;
  progress.until = until;
  progress.seconds = seconds();
  progress.share = work_done_ + work_left_ > 0 ? work_done_ / (work_done_ + work_left_) : 0;
  progress.seconds_left =
      work_done_ > 0 ? work_left_ / work_done_ * progress.seconds : std::numeric_limits<double>::quiet_NaN();
  return progress;
}

void SweepBoard::started(int number, std::int64_t until, const Cohort& cohort) {
  const std::lock_guard lock(mutex_);
  observer_.started(progress_of(number, until), cohort);
}

void SweepBoard::stepped(int number, std::int64_t until, const Cohort& cohort) {
  const std::lock_guard lock(mutex_);
  const double work = cohort.flops_per_step() * cohort.members();
  work_done_ += work;
  work_left_ = std::max(0.0, work_left_ - work);
  observer_.stepped(progress_of(number, until), cohort);
}

void SweepBoard::happened(const SweepCell& cell, const MemberEvent& event) {
  const std::lock_guard lock(mutex_);
  observer_.happened(cell, event);
}

void SweepBoard::warned(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (!warned_.insert(what).second) return;  // every cohort says the same of its data
  observer_.warned(what);
}

void SweepBoard::ended(const RunOutcome& outcome) {
  const std::lock_guard lock(mutex_);
  ++progress_.ended;
  observer_.ended(outcome);
}

}  // namespace norma
