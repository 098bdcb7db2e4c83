// Members of cohorts as run directories of their own, and back: a cohort that ends or pauses is taken apart, cells that
// paused at one step are put together again.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "norma/lab/sweep.h"

namespace norma {

// The files of a sweep.
struct SweepPaths {
  std::filesystem::path root;

  std::filesystem::path run(const std::string& id) const { return root / "runs" / id; }
  std::filesystem::path cohorts() const { return root / "cohorts"; }
  std::filesystem::path cohort(const std::string& id) const { return cohorts() / id; }
  // Exists exactly as long as the cohort's directory counts.
  std::filesystem::path marker(const std::string& id) const { return cohorts() / (id + ".json"); }
  std::filesystem::path rung(const std::string& group, std::int64_t step) const;
};

// A cohort under way, as its marker says.
struct CohortPlan {
  std::string id;
  std::vector<std::string> members;  // ids of cells
  std::int64_t from = 0;             // step at which it was put together
  std::int64_t until = 0;            // step at which it pauses or ends
};

void write_marker(const SweepPaths& paths, const CohortPlan& plan);
std::vector<CohortPlan> read_markers(const SweepPaths& paths, const std::function<void(const std::string&)>& warn);
void remove_cohort(const SweepPaths& paths, const std::string& id);

// Where a cell that has not ended stands: the step of its newest whole checkpoint, or 0. Throws Error when it
// has checkpoints but none that is whole.
std::int64_t paused_step(const SweepPaths& paths, const std::string& id,
                         const std::function<void(const std::string&)>& warn);

// Makes the directory of a cohort whose members wait at step plan.from > 0.
void join_cohort(const SweepPaths& paths, const CohortPlan& plan, const RunConfig& config,
                 const std::string& environment);

// Brings what the cohort's directory holds up to step `until` into the members' own: metrics, the last checkpoint, and
// for those that have ended (`result` given) the result. Can be repeated after a kill at any moment. Cells that are
// null are left out. Returns each member's own result, or the same as null where there is none.
struct SplitOptions {
  std::int64_t until = 0;
  std::string result = {};  // of the cohort, as JSON; empty: nobody has ended
  bool ended = false;       // everybody has; otherwise only those that diverged
  KeepWeights weights = KeepWeights::yes;
  std::string environment = {};
};
std::vector<std::string> split_cohort(const SweepPaths& paths, const CohortPlan& plan,
                                      const std::vector<const SweepCell*>& cells, const SplitOptions& options);

// Ends a paused cell as stopped early at `step`.
void stop_member(const SweepPaths& paths, const std::string& id, const std::string& result, std::int64_t step,
                 KeepWeights weights);

}  // namespace norma
