// The course of a sweep: what it finds, then its groups side by side.
#include <algorithm>
#include <cmath>
#include <map>

#include "lab/directory_kind.h"
#include "lab/sweep/cohorts.h"
#include "lab/sweep/course.h"
#include "lab/sweep/data.h"
#include "lab/sweep/ledger.h"
#include "lab/sweep/members.h"
#include "lab/sweep/mend.h"
#include "lab/workshop.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/lab/sweep.h"
#include "norma/lab/sweep_schemes.h"
#include "norma/store/atomic_file.h"
#include "norma/store/directory_lock.h"
#include "norma/store/environment.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

class Sweep {
 public:
  Sweep(const SweepRequest& request, SweepObserver& observer, const std::atomic<bool>& stop)
      : request_(request),
        paths_{request.directory},
        ledger_(request.config, paths_),
        environment_(describe_environment(request.command_line)),
        board_(observer, stop, request.until) {}

  SweepResult run() {
    require_sweep_directory(paths_.root);
    const std::int64_t asked = request_.config.base.train.threads;
    const int threads = asked > 0 ? static_cast<int>(asked) : machine().cores;
    const CohortLimits limits = ledger_.limits(threads);
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
    plan_work(limits);
    const bool finished = run_groups(limits, threads);
    finished ? ledger_.require_ends() : ledger_.nobody_runs();
    return {ledger_.outcomes(), !finished, board_.seconds(), board_.all_had_ended()};
  }

 private:
  Warn warn() {
    return [this](const std::string& what) { board_.warned(what); };
  }

  void plan_work(const CohortLimits& limits) {
    std::int64_t ended = 0;
    int cohorts = 0;
    double work = 0;
    for (std::size_t g = 0; g < ledger_.groups().size(); ++g) {
      const std::vector<std::size_t> cells = open_cells(ledger_.groups()[g]);
      ended += std::ssize(ledger_.groups()[g].cells) - std::ssize(cells);
      const double step_work = work_of_step(ledger_.cells()[ledger_.groups()[g].cells[0]].config);
      for (const GroupPart& part : parts_of(ledger_.cells(), cells, limits.most_members[g], limits.parts)) {
        auto open = static_cast<double>(part.cells.size());
        std::int64_t before = 0;
        for (const std::int64_t until : ledger_.rungs_of(ledger_.groups()[g])) {
          if (open > 0) cohorts += static_cast<int>(std::ceil(open / static_cast<double>(part.most_members)));
          work += open * static_cast<double>(until - before) * step_work;
          before = until;
          if (request_.config.halving) open = std::ceil(open / static_cast<double>(request_.config.halving->eta));
        }
      }
    }
    board_.planned(static_cast<std::int64_t>(ledger_.cells().size()), ended, cohorts, work);
  }

  std::vector<std::size_t> open_cells(const SweepGroup& group) const {
    std::vector<std::size_t> open;
    for (const std::size_t cell : group.cells) {
      if (!ledger_.is_done(cell)) open.push_back(cell);
    }
    return open;
  }

  // Where every group has several threads it goes in parts, unless it has cohorts under way, which may have members of
  // any.
  struct Job {
    SweepGroup group;
    std::int64_t most_members;
    std::vector<CohortPlan> under_way;
  };
  std::vector<Job> jobs_of(const CohortLimits& limits) {
    std::map<std::string, std::vector<CohortPlan>> under_way = cohorts_under_way();
    std::vector<Job> jobs;
    for (std::size_t g = 0; g < ledger_.groups().size(); ++g) {
      const SweepGroup& group = ledger_.groups()[g];
      std::vector<CohortPlan> begun = std::move(under_way[group.key]);
      const std::vector<std::size_t> open = open_cells(group);
      if (limits.parts == 1 || !begun.empty() || open.empty()) {
        jobs.push_back({group, limits.most_members[g], std::move(begun)});
        continue;
      }
      for (GroupPart& part : parts_of(ledger_.cells(), open, limits.most_members[g], limits.parts))
        jobs.push_back({{group.key, std::move(part.cells)}, part.most_members, {}});
    }
    return jobs;
  }

  // Each goes its own way, with its own cohorts and folders. False when one was asked to stop.
  bool run_groups(const CohortLimits& limits, int threads) {
    const SweepRoom room{request_, paths_, ledger_, board_, environment_};
    const std::vector<Job> jobs = jobs_of(limits);
    std::atomic<bool> finished = true;
    const auto run_job = [&](std::size_t index, const Workshop::Threads& share) {
      const Job& job = jobs[index];
      GroupCourse course(room, job.group, job.most_members, share);
      try {
        if (!course.run(job.under_way)) finished = false;
      } catch (const Error& error) {
        if (ledger_.groups().size() == 1) throw;
        const ModelConfig& model = ledger_.cells()[job.group.cells[0]].config.model;
        fail("{}, {} layers: {}", model.scheme.asked(), model.layers, error.what());
      }
    };
    Workshop(threads, limits.at_once * limits.parts).run(jobs.size(), run_job, [&] { board_.fail(); });
    return finished;
  }

  // By the key of their group.
  std::map<std::string, std::vector<CohortPlan>> cohorts_under_way() {
    std::map<std::string, std::vector<CohortPlan>> all;
    for (const CohortPlan& plan : read_markers(paths_, warn())) {
      const bool known = std::all_of(plan.members.begin(), plan.members.end(),
                                     [&](const std::string& id) { return ledger_.knows(id); });
      if (known) {
        all[ledger_.group_of(ledger_.index_of(plan.members[0])).key].push_back(plan);
      } else {
        dissolve(plan);
      }
    }
    return all;
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
      if (cell != nullptr) ledger_.refresh({cell->id});
    }
  }

  const SweepRequest& request_;
  SweepPaths paths_;
  SweepLedger ledger_;
  std::string environment_;
  SweepBoard board_;
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
