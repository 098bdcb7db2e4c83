// Looks at a cohort of a sweep while it trains: tells the observer, reckons the time that is left, says when it pauses.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "lab/sweep/members.h"
#include "norma/lab/sweep.h"
#include "norma/train/trainer.h"

namespace norma {

// Seconds that are left, from how long the work so far took. Work is counted in operations.
class SweepClock {
 public:
  double work_left = 0;
  void worked(double work, double seconds);
  double seconds() const { return seconds_; }
  double seconds_left() const;  // not a number before any work

 private:
  double work_ = 0, seconds_ = 0;
};

class CohortWatcher final : public RunObserver {
 public:
  // `others_wait`: cells of the same program could fill idle places.
  CohortWatcher(const CohortPlan& plan, const std::vector<const SweepCell*>& cells, SweepObserver& observer,
                SweepProgress& progress, SweepClock& clock, bool others_wait, const std::atomic<bool>& stop);

  void started(const Cohort& cohort, const Source& source) override;
  void warned(const std::string& what) override;
  void stepped(const Cohort& cohort, double seconds) override;
  void happened(const MemberEvent& event) override;
  void saved(std::int64_t step) override;

  std::atomic<bool> halt{false};
  bool paused = false;
  std::string result;  // at the pause, of what the last checkpoint holds

 private:
  void tell();
  void look(const Cohort& cohort);

  const CohortPlan& plan_;
  const std::vector<const SweepCell*>& cells_;
  SweepObserver& observer_;
  SweepProgress& progress_;
  SweepClock& clock_;
  bool others_wait_;
  const std::atomic<bool>& stop_;
  const Cohort* cohort_ = nullptr;
  const Source* source_ = nullptr;
  double seconds_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace norma
