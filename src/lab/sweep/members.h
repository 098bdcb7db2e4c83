// Members of cohorts as run directories of their own, and back: a cohort that ends or pauses is taken apart, cells that
// paused at one step are put together again.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "norma/lab/sweep.h"
#include "norma/store/folder.h"
#include "norma/store/metrics.h"
#include "norma/store/run_directory.h"

namespace norma {

using Warn = std::function<void(const std::string&)>;

// The files of a sweep: paths to read, folders to write to. The folders inside the sweep's are no links.
struct SweepPaths {
  std::filesystem::path root;

  Folder runs_folder() const { return Folder(root).make_sub("runs"); }
  Folder cohorts_folder() const { return Folder(root).make_sub("cohorts"); }
  Folder rungs_folder() const { return Folder(root).make_sub("rungs"); }

  std::filesystem::path run(const std::string& id) const { return root / "runs" / id; }
  std::filesystem::path cohorts() const { return root / "cohorts"; }
  std::filesystem::path cohort(const std::string& id) const { return cohorts() / id; }
  // Exists exactly as long as the cohort's directory counts.
  std::filesystem::path marker(const std::string& id) const { return cohorts() / (id + ".json"); }
};

// A cohort under way, as its marker says.
struct CohortPlan {
  std::string id;
  std::vector<std::string> members;  // ids of cells
  std::int64_t from = 0;             // step at which it was put together
  std::int64_t until = 0;            // step at which it pauses or ends
};

// What goes from one run into another is compared first; these throw Error. The checkpoint's copy of the configuration
// has a checksum, and the sweep itself knows what the data were.
void check_config(const RunView& run, const Checkpoint& checkpoint, const SchemeLibrary& schemes);
void check_data(const SweepPaths& paths, const RunView& run, const SchemeLibrary& schemes);

// Removes what a kill left half written, before anything else is touched. Throws Error when a folder of the sweep is a
// link.
void tidy_sweep(const Folder& root);

void write_marker(const SweepPaths& paths, const CohortPlan& plan);
// Removes what a kill left of others.
std::vector<CohortPlan> read_markers(const SweepPaths& paths, const Warn& warn);
// Its marker and its directory; files that norma does not write stay.
void remove_cohort(const SweepPaths& paths, const std::string& id);

// Where a cell that has not ended stands: the step of its newest whole checkpoint, or 0. Throws Error when it
// has checkpoints but none that is whole.
std::int64_t paused_step(const SweepPaths& paths, const std::string& id, const Warn& warn);

// Makes the directory of a cohort whose members wait at step plan.from > 0. Throws Error when a checkpoint of a member
// is damaged or its log has a gap.
void join_cohort(const SweepPaths& paths, const CohortPlan& plan, const RunConfig& config,
                 const std::string& environment);

struct MemberRecord {
  std::int64_t step;
  std::vector<Metric> metrics;
};
// What the log of a cohort says of each member behind plan.from, up to the step of the checkpoint. Throws Error when a
// record is missing.
std::vector<std::vector<MemberRecord>> member_records(const RunView& cohort, const CohortPlan& plan,
                                                      const Checkpoint& checkpoint, const TrainConfig& train);

// The results of the members of a cohort, each as if it had run alone. Throws Error when `cohort` is damaged.
std::vector<std::string> member_results(const std::string& cohort, std::size_t members);

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
