#include "lab/sweep/watcher.h"

#include <bit>

namespace norma {
namespace {

// Asked at steps that are powers of two: what diverges does so early, and no member pauses often.
bool half_empty(const Cohort& cohort) {
  const int active = cohort.active_members();
  return std::has_single_bit(static_cast<std::uint64_t>(cohort.step())) && active > 0 && 2 * active <= cohort.members();
}

}  // namespace

CohortWatcher::CohortWatcher(const CohortPlan& plan, const std::vector<const SweepCell*>& cells, SweepBoard& board,
                             int number, bool others_wait)
    : plan_(plan), cells_(cells), board_(board), number_(number), others_wait_(others_wait) {}

void CohortWatcher::started(const Cohort& cohort, const Source& source) {
  cohort_ = &cohort;
  source_ = &source;
  board_.started(number_, plan_.until, cohort);
  look(cohort);
}

void CohortWatcher::stepped(const Cohort& cohort, double seconds) {
  seconds_ = seconds;
  board_.stepped(number_, plan_.until, cohort);
  ++steps_;
  look(cohort);
}

void CohortWatcher::happened(const MemberEvent& event) {
  board_.happened(*cells_[static_cast<std::size_t>(event.member)], event);
}

// Whether or not the step ended with an evaluation, and whoever reads it, this process or the next one after a kill.
void CohortWatcher::saved(std::int64_t /*step*/) {
  if (paused) result = write_result(describe_result(*cohort_, *source_, seconds_, steps_));
}

void CohortWatcher::look(const Cohort& cohort) {
  const bool at_end = cohort.step() >= plan_.until && plan_.until < cohort.config().train.steps;
  if (at_end || (others_wait_ && half_empty(cohort))) paused = true;
  if (paused || board_.stopping()) halt = true;
}

}  // namespace norma
