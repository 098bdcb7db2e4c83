#include "lab/sweep/mend.h"

#include "norma/core/error.h"
#include "norma/train/result.h"
#include "norma/train/run_schemes.h"
#include "norma/train/trained_run.h"

namespace norma {
namespace {

// Throws Error when it cannot go on. None: it was killed before its first checkpoint.
std::optional<Checkpoint> usable_checkpoint(const SweepPaths& paths, const CohortPlan& plan, const RunConfig& config,
                                            const Warn& warn) {
  const RunView view(paths.cohort(plan.id));
  SchemeLibrary schemes;
  schemes.put(config.model.scheme);
  parse_config(view.config(), view.config_path().string(), library_of_run(view.path(), schemes));
  CheckpointSearch search = checkpoint_to_resume(view, config.train.checkpoint_every);
  if (!search.newest && plan.from > 0) fail("'{}' has no checkpoint of step {}", view.path().string(), plan.from);
  check_data(paths, view, schemes);
  // The last checkpoint of a cohort that keeps no weights belongs to its result.
  if (search.newest && search.newest->file.tensors().empty() && !view.is_done())
    fail("'{}' holds no weights, and there is no result", search.newest->file.path().string());
  if (search.newest) check_config(view, *search.newest, schemes);
  if (search.newest) member_records(view, plan, *search.newest, config.train);
  for (const std::string& warning : search.warnings) warn(warning);
  return std::move(search.newest);
}

// Throws Error when the result is damaged or of another step than the checkpoint.
void check_result(const RunView& view, const CohortPlan& plan, const std::optional<Checkpoint>& checkpoint) {
  view.verify_end();
  const std::string result = view.result();
  member_results(result, plan.members.size());
  const std::int64_t step = read_result(result, "the result of the cohort").steps;
  if (!checkpoint || checkpoint->step != step)
    fail("'{}' is of step {}, but the newest whole checkpoint is of step {}", view.result_path().string(), step,
         checkpoint ? checkpoint->step : 0);
}

}  // namespace

MendedCohort mend_cohort(const SweepPaths& paths, const CohortPlan& plan, const RunConfig& config, const Warn& warn) {
  const Folder cohorts = paths.cohorts_folder();
  const RunView view(paths.cohort(plan.id));
  if (cohorts.kind(plan.id) == PathKind::nothing && plan.from == 0) return {CohortState::open};
  const Folder folder = cohorts.make_sub(plan.id);  // refuses a link
  if (!view.exists() && plan.from == 0) return {CohortState::open};
  std::optional<Checkpoint> checkpoint;
  try {
    checkpoint = usable_checkpoint(paths, plan, config, warn);
  } catch (const Error& error) {
    warn(fmt::format("a cohort of {} is lost and its members train again from step {}: {}", plan.members.size(),
                     plan.from, error.what()));
    remove_cohort(paths, plan.id);
    return {CohortState::gone};
  }
  const std::int64_t step = checkpoint ? checkpoint->step : 0;
  if (!view.is_done()) return {CohortState::open, step};
  try {
    check_result(view, plan, checkpoint);
    return {CohortState::ended, step};
  } catch (const Error& error) {
    warn(fmt::format("a cohort that had ended goes on from step {}: {}", step, error.what()));
    reopen_run(folder);
    return {CohortState::open, step};
  }
}

}  // namespace norma
