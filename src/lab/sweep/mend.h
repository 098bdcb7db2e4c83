// A cohort under way, looked at before it is used: what is damaged is trained again from the last state that is whole,
// and nothing that was not compared with its checksum goes into a member's run.
#pragma once

#include "lab/sweep/members.h"

namespace norma {

enum class CohortState {
  open,   // to be begun or to go on
  ended,  // checkpoint, records and result are whole and of one step
  gone,   // nothing of it could be used; it was removed, and its members are where they were before it
};

struct MendedCohort {
  CohortState state;
  std::int64_t step = 0;  // of its newest whole checkpoint; 0: there is none
};

// `warn` is told whatever is not as it was left.
MendedCohort mend_cohort(const SweepPaths& paths, const CohortPlan& plan, const RunConfig& config, const Warn& warn);

}  // namespace norma
