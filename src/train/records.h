// What a run writes down: records for metrics.jsonl and scalars for TensorBoard.
#pragma once

#include <vector>

#include "norma/store/metrics.h"
#include "norma/store/tensorboard.h"
#include "norma/train/cohort.h"

namespace norma {

class RunRecords {
 public:
  explicit RunRecords(const Cohort& cohort) : members_(cohort.members()) {}

  // Loss, gradient norm, rate, speed, and a list by site of every probe.
  std::vector<Metric> step(Cohort& cohort, int member, double seconds_per_step) const;
  std::vector<Metric> evaluation(const Cohort& cohort, int member) const;  // empty when there was none
  std::vector<Metric> event(const MemberEvent& event) const;

  // The numbers of a record under the member's own tags; of a list one for each site.
  std::vector<EventScalar> scalars(int member, std::span<const Metric> metrics) const;

 private:
  int members_;
};

}  // namespace norma
