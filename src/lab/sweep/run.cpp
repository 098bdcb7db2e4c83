// The course of a sweep: cohorts under way first, then group by group, rung by rung.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lab/directory_kind.h"
#include "lab/sweep/cohorts.h"
#include "lab/sweep/data.h"
#include "lab/sweep/halving.h"
#include "lab/sweep/ledger.h"
#include "lab/sweep/members.h"
#include "lab/sweep/mend.h"
#include "lab/sweep/watcher.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/lab/sweep.h"
#include "norma/lab/sweep_schemes.h"
#include "norma/store/atomic_file.h"
#include "norma/store/directory_lock.h"
#include "norma/store/environment.h"
#include "norma/store/run_directory.h"
#include "norma/train/trained_run.h"
#include "norma/train/trainer.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

class Sweep {
 public:
  Sweep(const SweepRequest& request, SweepObserver& observer, const std::atomic<bool>& stop)
      : request_(request),
        observer_(observer),
        stop_(stop),
        paths_{request.directory},
        ledger_(request.config, paths_),
        environment_(describe_environment(request.command_line)) {}

  SweepResult run() {
    require_sweep_directory(paths_.root);
    const std::vector<std::int64_t> most = ledger_.most_members_of_groups();
    const std::vector<SchemeChoice> schemes = ledger_.schemes();
    require_same_schemes(paths_.root, schemes);
    const DataRecord data = require_same_data(paths_.root, ledger_.data());
    const Folder root = Folder::make(paths_.root);
    const DirectoryLock lock(root);
    require_sweep_directory(paths_.root);  // another process may have begun something else here meanwhile
    tidy_sweep(root);
    keep_schemes(paths_.root, schemes);
    keep_data_record(root, data);
    write_atomically(root, kSweepFile, print_sweep(request_.config));
    ledger_.open();
    plan_work(most);
    const bool before = progress_.ended == progress_.runs;
    bool finished = finish_cohorts_under_way();
    for (std::size_t group = 0; group < ledger_.groups().size() && finished; ++group)
      finished = run_group(ledger_.groups()[group], most[group]);
    finished ? ledger_.require_ends() : ledger_.nobody_runs();
    return {ledger_.outcomes(), !finished, clock_.seconds(), before};
  }

 private:
  using Waiting = std::map<std::int64_t, std::vector<std::size_t>>;  // cells by the step they have reached
  Warn warn() {
    return [this](const std::string& what) { observer_.warned(what); };
  }

  void plan_work(const std::vector<std::int64_t>& most) {
    progress_.runs = static_cast<std::int64_t>(ledger_.cells().size());
    for (std::size_t g = 0; g < ledger_.groups().size(); ++g) {
      double open = 0;
      for (const std::size_t cell : ledger_.groups()[g].cells) open += ledger_.is_done(cell) ? 0 : 1;
      progress_.ended += static_cast<std::int64_t>(ledger_.groups()[g].cells.size()) - static_cast<std::int64_t>(open);
      std::int64_t before = 0;
      const double step_work = work_of_step(ledger_.cells()[ledger_.groups()[g].cells[0]].config);
      for (const std::int64_t until : ledger_.rungs_of(ledger_.groups()[g])) {
        if (open > 0) progress_.cohorts += static_cast<int>(std::ceil(open / static_cast<double>(most[g])));
        clock_.work_left += open * static_cast<double>(until - before) * step_work;
        before = until;
        if (request_.config.halving) open = std::ceil(open / static_cast<double>(request_.config.halving->eta));
      }
    }
    observer_.planned(progress_.runs, progress_.ended, progress_.cohorts);
  }

  bool finish_cohorts_under_way() {
    for (const CohortPlan& plan : read_markers(paths_, warn())) {
      const bool known = std::all_of(plan.members.begin(), plan.members.end(),
                                     [&](const std::string& id) { return ledger_.knows(id); });
      if (!known) {
        dissolve(plan);
      } else if (!run_cohort(plan, others_wait(plan))) {
        return false;
      }
    }
    return true;
  }

  bool others_wait(const CohortPlan& plan) {
    const SweepGroup& group = ledger_.group_of(ledger_.index_of(plan.members[0]));
    const std::vector<std::int64_t> rungs = ledger_.rungs_of(group);
    const auto rung = std::lower_bound(rungs.begin(), rungs.end(), plan.until);
    Waiting waiting;
    for (const std::size_t cell : group.cells) {
      const bool member =
          std::find(plan.members.begin(), plan.members.end(), ledger_.cells()[cell].id) != plan.members.end();
      if (!member) add_waiting(waiting, {cell}, rung == rungs.end() ? ledger_.steps_of(group) : *rung);
    }
    return !waiting.empty();
  }

  // A cohort with members that are no longer asked for: the others keep what they have.
  void dissolve(const CohortPlan& plan) {
    const RunView view(paths_.cohort(plan.id));
    std::vector<const SweepCell*> cells;
    const RunConfig* config = &request_.config.base;
    for (const std::string& id : plan.members) {
      cells.push_back(ledger_.knows(id) ? &ledger_.cell(id) : nullptr);
      if (cells.back() != nullptr) config = &cells.back()->config;
    }
    const MendedCohort mended = mend_cohort(paths_, plan, *config, warn());
    const bool ended = mended.state == CohortState::ended;
    if (mended.step > plan.from)
      split_cohort(paths_, plan, cells,
                   {.until = mended.step,
                    .result = ended ? view.result() : "",
                    .ended = ended,
                    .weights = request_.weights,
                    .environment = environment_});
    remove_cohort(paths_, plan.id);
    for (const SweepCell* cell : cells) {
      if (cell != nullptr) ledger_.refresh(ledger_.index_of(cell->id));
    }
  }

  // A run that has come to its end without a result, or to a rung without a score, lost the cohort that would have
  // written it.
  void restart_lost(const SweepGroup& group, std::int64_t until) {
    RungScores scores;
    if (until < ledger_.steps_of(group)) scores = read_scores(paths_.rungs_folder(), rung_name(group.key, until));
    for (const std::size_t cell : group.cells) {
      const std::string& id = ledger_.cells()[cell].id;
      const std::vector<std::int64_t> steps = RunView(paths_.run(id)).checkpoint_steps();
      const bool lost = !steps.empty() && steps.back() >= until && !scores.contains(id);
      if (!lost || ledger_.is_done(cell)) continue;
      observer_.warned(fmt::format("'{}' lacks what its cohort brought to step {}; it trains again from the start",
                                   paths_.run(id).string(), until));
      remove_run(paths_.runs_folder(), id);
    }
  }

  bool run_group(const SweepGroup& group, std::int64_t most) {
    std::int64_t before = 0;
    for (const std::int64_t until : ledger_.rungs_of(group)) {
      restart_lost(group, until);
      if (!run_until(group, until, most)) return false;
      if (until < ledger_.steps_of(group)) halve(group, before, until);
      before = until;
    }
    return true;
  }

  // Those furthest behind go first, as far as the others have come; there all are packed into full cohorts again.
  bool run_until(const SweepGroup& group, std::int64_t until, std::int64_t most) {
    Waiting waiting;
    add_waiting(waiting, by_falling_rate(ledger_.cells(), group.cells), until);
    while (!waiting.empty()) {
      const std::int64_t from = waiting.begin()->first;
      std::vector<std::size_t>& cells = waiting.begin()->second;
      const auto end = cells.begin() + even_parts(static_cast<std::int64_t>(cells.size()), most).front();
      const std::vector<std::size_t> part(cells.begin(), end);
      cells.erase(cells.begin(), end);
      const auto ahead = waiting.upper_bound(from);
      const std::int64_t meet = ahead == waiting.end() ? until : ahead->first;
      if (cells.empty()) waiting.erase(from);
      if (!run_cohort(begin_cohort(part, from, meet), !waiting.empty())) return false;
      add_waiting(waiting, part, until);
    }
    return true;
  }

  void add_waiting(Waiting& waiting, const std::vector<std::size_t>& cells, std::int64_t until) {
    for (const std::size_t cell : cells) {
      if (ledger_.is_done(cell)) continue;
      const std::int64_t at = paused_step(paths_, ledger_.cells()[cell].id, warn());
      if (at < until) waiting[at].push_back(cell);
    }
  }

  CohortPlan begin_cohort(const std::vector<std::size_t>& part, std::int64_t from, std::int64_t until) {
    CohortPlan plan{.id = {}, .members = {}, .from = from, .until = until};
    std::string all = fmt::format("{} {}", from, until);
    std::vector<const SweepCell*> cells;
    for (const std::size_t cell : part) {
      plan.members.push_back(ledger_.cells()[cell].id);
      cells.push_back(&ledger_.cells()[cell]);
      all += " " + ledger_.cells()[cell].id;
    }
    plan.id = fmt::format("{:016x}", hash_name(all));
    if (from > 0) join_cohort(paths_, plan, cohort_config(cells), environment_);
    write_marker(paths_, plan);
    return plan;
  }

  // Until the plan says, or until half of it is idle while others wait. False when it was asked to stop.
  bool run_cohort(const CohortPlan& plan, bool others) {
    std::vector<const SweepCell*> cells;
    for (const std::string& id : plan.members) cells.push_back(&ledger_.cell(id));
    const RunConfig config = cohort_config(cells);
    const RunView view(paths_.cohort(plan.id));
    ledger_.set_running(plan.members);
    ++progress_.cohort;
    progress_.cohorts = std::max(progress_.cohorts, progress_.cohort);
    SplitOptions split{.until = 0, .weights = request_.weights, .environment = environment_};
    const MendedCohort mended = mend_cohort(paths_, plan, config, warn());
    if (mended.state == CohortState::gone) {  // its members wait for another, or have ended
      for (const std::string& id : plan.members) ledger_.refresh(ledger_.index_of(id));
      return true;
    }
    if (mended.state == CohortState::ended) {
      split.ended = true;
      split.until = mended.step;
    } else {
      if (stop_) return false;
      CohortWatcher watcher(plan, cells, observer_, progress_, clock_, others, stop_);
      const RunEnd end = run_training({.config = config,
                                       .directory = paths_.cohort(plan.id),
                                       .command_line = request_.command_line,
                                       .recorded_before = plan.from},
                                      watcher, watcher.halt);
      if (end == RunEnd::interrupted && !watcher.paused) return false;
      split.ended = end == RunEnd::finished;
      split.result = watcher.result;
      split.until = view.checkpoint_steps().back();  // written just now, and all later ones are gone
    }
    if (split.ended) split.result = view.result();
    const std::vector<std::string> results = split_cohort(paths_, plan, cells, split);
    if (!split.ended && split.until == plan.until && ledger_.is_rung(ledger_.index_of(plan.members[0]), plan.until))
      record_rung(plan, view, results);
    remove_cohort(paths_, plan.id);
    for (const std::string& id : plan.members) refresh(ledger_.index_of(id));
    return true;
  }

  // What a cohort brings to a rung, before its directory goes.
  void record_rung(const CohortPlan& plan, const RunView& view, const std::vector<std::string>& results) {
    const Checkpoint checkpoint = view.checkpoint(plan.until);
    RungScores scores;
    for (std::size_t i = 0; i < plan.members.size(); ++i)
      scores[plan.members[i]] = {rung_score(checkpoint.file, static_cast<int>(i)), results[i]};
    const std::string key = ledger_.group_of(ledger_.index_of(plan.members[0])).key;
    add_scores(paths_.rungs_folder(), rung_name(key, plan.until), scores);
  }

  void halve(const SweepGroup& group, std::int64_t before, std::int64_t step) {
    const RungScores scores = read_scores(paths_.rungs_folder(), rung_name(group.key, step));
    std::vector<const SweepCell*> cells;
    std::set<std::string> out;
    for (const std::size_t cell : group.cells) {
      cells.push_back(&ledger_.cells()[cell]);
      if (ledger_.is_done(cell) && ledger_.outcomes()[cell].last_step <= before) out.insert(ledger_.cells()[cell].id);
    }
    for (const std::string& id : hopeless(cells, scores, out, request_.config.halving->eta)) {
      if (ledger_.is_done(ledger_.index_of(id))) continue;
      stop_member(paths_, id, scores.at(id).result, step, request_.weights);
      refresh(ledger_.index_of(id));
    }
  }

  void refresh(std::size_t cell) {
    const RunOutcome& outcome = ledger_.refresh(cell);
    if (outcome.status == RunStatus::waiting) return;
    ++progress_.ended;
    observer_.ended(outcome);
  }

  const SweepRequest& request_;
  SweepObserver& observer_;
  const std::atomic<bool>& stop_;
  SweepPaths paths_;
  SweepLedger ledger_;
  std::string environment_;
  SweepProgress progress_;
  SweepClock clock_;
};

}  // namespace

SweepResult run_sweep(const SweepRequest& request, SweepObserver& observer, const std::atomic<bool>& stop) {
  try {
    return Sweep(request, observer, stop).run();
  } catch (const fs::filesystem_error& error) {
    fail("{}", error.what());
  }
}

}  // namespace norma
