#include "lab/sweep/watcher.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace norma {
namespace {

// Asked at steps that are powers of two: what diverges does so early, and no member pauses often.
bool half_empty(const Cohort& cohort) {
  const int active = cohort.active_members();
  return std::has_single_bit(static_cast<std::uint64_t>(cohort.step())) && active > 0 && 2 * active <= cohort.members();
}

}  // namespace

void SweepClock::worked(double work, double seconds) {
  work_ += work;
  seconds_ += seconds;
  work_left = std::max(0.0, work_left - work);
}

double SweepClock::seconds_left() const {
  return work_ > 0 ? work_left / work_ * seconds_ : std::numeric_limits<double>::quiet_NaN();
}

CohortWatcher::CohortWatcher(const CohortPlan& plan, const std::vector<const SweepCell*>& cells,
                             SweepObserver& observer, SweepProgress& progress, SweepClock& clock, bool others_wait,
                             const std::atomic<bool>& stop)
    : plan_(plan),
      cells_(cells),
      observer_(observer),
      progress_(progress),
      clock_(clock),
      others_wait_(others_wait),
      stop_(stop) {}

void CohortWatcher::started(const Cohort& cohort, const Source& source) {
  cohort_ = &cohort;
  source_ = &source;
  progress_.until = plan_.until;
  tell();
  observer_.started(progress_, cohort);
  look(cohort);
}

void CohortWatcher::warned(const std::string& what) { observer_.warned(what); }

void CohortWatcher::stepped(const Cohort& cohort, double seconds) {
  clock_.worked(cohort.flops_per_step() * cohort.members(), seconds - seconds_);
  seconds_ = seconds;
  tell();
  observer_.stepped(progress_, cohort);
  ++steps_;
  look(cohort);
}

void CohortWatcher::happened(const MemberEvent& event) {
  observer_.happened(*cells_[static_cast<std::size_t>(event.member)], event);
}

void CohortWatcher::tell() {
  progress_.seconds = clock_.seconds();
  progress_.seconds_left = clock_.seconds_left();
}

// Whether or not the step ended with an evaluation, and whoever reads it, this process or the next one after a kill.
void CohortWatcher::saved(std::int64_t /*step*/) {
  if (paused) result = write_result(describe_result(*cohort_, *source_, seconds_, steps_));
}

void CohortWatcher::look(const Cohort& cohort) {
  const bool at_end = cohort.step() >= plan_.until && plan_.until < cohort.config().train.steps;
  if (at_end || (others_wait_ && half_empty(cohort))) paused = true;
  if (paused || stop_) halt = true;
}

}  // namespace norma
