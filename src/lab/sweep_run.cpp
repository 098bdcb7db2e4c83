// The course of a sweep: cohorts under way first, then group by group, rung by rung.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "lab/sweep_cohorts.h"
#include "lab/sweep_halving.h"
#include "lab/sweep_index.h"
#include "lab/sweep_members.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/lab/sweep.h"
#include "norma/lab/sweep_schemes.h"
#include "norma/store/atomic_file.h"
#include "norma/store/environment.h"
#include "norma/store/run_directory.h"
#include "norma/train/trainer.h"
#include "store/run_lock.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSweepFile = "sweep.toml";

// The lock of the whole directory, given up with this object.
class DirectoryLock {
 public:
  explicit DirectoryLock(const fs::path& path) : descriptor_(lock_run(path)) {}
  DirectoryLock(const DirectoryLock&) = delete;
  ~DirectoryLock() { ::close(descriptor_); }

 private:
  int descriptor_;
};

void make_root(const fs::path& root) {
  if (fs::exists(root) && !fs::is_directory(root)) fail("'{}' is a file; expected a folder for a sweep", root.string());
  if (fs::is_directory(root) && !fs::is_empty(root) && !fs::exists(root / kSweepFile) && !fs::exists(root / kLockName))
    fail("'{}' holds something else than a sweep; choose another directory", root.string());
  fs::create_directories(root / "runs");
}

// Seconds that are left, from how long the work so far took. Work is counted in operations.
class Clock {
 public:
  double work_left = 0;
  void worked(double work, double seconds) {
    work_ += work;
    seconds_ += seconds;
    work_left = std::max(0.0, work_left - work);
  }
  double seconds() const { return seconds_; }
  double seconds_left() const {
    return work_ > 0 ? work_left / work_ * seconds_ : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  double work_ = 0, seconds_ = 0;
};

// Passes on what a cohort does and says when it pauses.
class CohortWatcher final : public RunObserver {
 public:
  CohortWatcher(const CohortPlan& plan, const std::vector<const SweepCell*>& cells, SweepObserver& observer,
                SweepProgress& progress, Clock& clock, bool others_wait, const std::atomic<bool>& stop)
      : plan_(plan),
        cells_(cells),
        observer_(observer),
        progress_(progress),
        clock_(clock),
        others_wait_(others_wait),
        stop_(stop) {}

  void started(const Cohort& cohort, const Source& source) override {
    source_ = &source;
    progress_.until = plan_.until;
    tell();
    observer_.started(progress_, cohort);
    look(cohort, 0, 0);
  }
  void warned(const std::string& what) override { observer_.warned(what); }
  void stepped(const Cohort& cohort, double seconds) override {
    clock_.worked(cohort.flops_per_step() * cohort.members(), seconds - seconds_);
    seconds_ = seconds;
    tell();
    observer_.stepped(progress_, cohort);
    look(cohort, seconds, ++steps_);
  }
  void happened(const MemberEvent& event) override {
    observer_.happened(*cells_[static_cast<std::size_t>(event.member)], event);
  }

  std::atomic<bool> halt{false};
  bool paused = false;
  std::string result;  // at the pause

 private:
  void tell() {
    progress_.seconds = clock_.seconds();
    progress_.seconds_left = clock_.seconds_left();
  }
  // Asked at steps that are powers of two: what diverges does so early, and no member pauses often.
  static bool half_empty(const Cohort& cohort) {
    const int active = cohort.active_members();
    return std::has_single_bit(static_cast<std::uint64_t>(cohort.step())) && active > 0 &&
           2 * active <= cohort.members();
  }
  void look(const Cohort& cohort, double seconds, std::int64_t steps) {
    const bool at_end = cohort.step() >= plan_.until && plan_.until < cohort.config().train.steps;
    if (at_end || (others_wait_ && half_empty(cohort))) {
      paused = true;
      result = describe_result(cohort, *source_, seconds, steps);
    }
    if (paused || stop_) halt = true;
  }

  const CohortPlan& plan_;
  const std::vector<const SweepCell*>& cells_;
  SweepObserver& observer_;
  SweepProgress& progress_;
  Clock& clock_;
  bool others_wait_;  // cells of the same program that could fill idle places
  const std::atomic<bool>& stop_;
  const Source* source_ = nullptr;
  double seconds_ = 0;
  std::int64_t steps_ = 0;
};

class Sweep {
 public:
  Sweep(const SweepRequest& request, SweepObserver& observer, const std::atomic<bool>& stop)
      : request_(request),
        observer_(observer),
        stop_(stop),
        cells_(sweep_cells(request.config)),
        groups_(group_cells(cells_)),
        paths_{request.directory},
        environment_(describe_environment(request.command_line)) {
    for (std::size_t i = 0; i < cells_.size(); ++i) by_id_[cells_[i].id] = i;
  }

  SweepResult run() {
    const std::vector<std::int64_t> most = check_groups();
    const std::vector<std::string> schemes = scheme_names();
    require_same_schemes(paths_.root, schemes);
    make_root(paths_.root);
    const DirectoryLock lock(paths_.root);
    remove_stale_temporaries(paths_.root);
    keep_schemes(paths_.root, schemes);
    write_atomically(paths_.root / kSweepFile, print_sweep(request_.config));
    index_.emplace(paths_.root / "index.sqlite");
    for (const SweepCell& cell : cells_) outcomes_.push_back(read(cell));
    index_->put(outcomes_);
    plan_work(most);
    bool finished = finish_cohorts_under_way();
    for (std::size_t group = 0; group < groups_.size() && finished; ++group)
      finished = run_group(groups_[group], most[group]);
    if (!finished) index_->put(outcomes_);  // nobody is running any more
    return {std::move(outcomes_), !finished, clock_.seconds()};
  }

 private:
  using Warn = std::function<void(const std::string&)>;
  using Waiting = std::map<std::int64_t, std::vector<std::size_t>>;  // cells by the step they have reached
  Warn warn() {
    return [this](const std::string& what) { observer_.warned(what); };
  }

  RunOutcome read(const SweepCell& cell) const {
    return read_outcome(outcome_of(cell.id, cell.axes, cell.config), paths_.run(cell.id));
  }

  std::vector<std::string> scheme_names() const {
    std::set<std::string> names;
    for (const SweepCell& cell : cells_) names.insert(cell.config.model.scheme);
    return {names.begin(), names.end()};
  }

  bool is_done(std::size_t cell) const { return RunView(paths_.run(cells_[cell].id)).is_done(); }

  std::int64_t steps_of(const SweepGroup& group) const { return cells_[group.cells[0]].config.train.steps; }

  // Every program is built once before anything is written, so that a mistake in any cell is found at once.
  std::vector<std::int64_t> check_groups() const {
    std::vector<std::int64_t> most;
    for (const SweepGroup& group : groups_) {
      const bool open = std::any_of(group.cells.begin(), group.cells.end(), [&](std::size_t i) { return !is_done(i); });
      try {
        most.push_back(open ? most_members(cells_[group.cells[0]].config, request_.config.most_members) : 1);
      } catch (const Error& error) {
        fail("{}: {}", cells_[group.cells[0]].id, error.what());
      }
    }
    return most;
  }

  std::vector<std::int64_t> rungs_of(const SweepGroup& group) const {
    return rung_steps(request_.config.halving, steps_of(group));
  }

  void plan_work(const std::vector<std::int64_t>& most) {
    progress_.runs = static_cast<std::int64_t>(cells_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      double open = 0;
      for (const std::size_t cell : groups_[g].cells) open += is_done(cell) ? 0 : 1;
      progress_.ended += static_cast<std::int64_t>(groups_[g].cells.size()) - static_cast<std::int64_t>(open);
      std::int64_t before = 0;
      const RunConfig& config = cells_[groups_[g].cells[0]].config;
      const double step_work = model_flops(sized(config.model)) * static_cast<double>(config.train.accumulate);
      for (const std::int64_t until : rungs_of(groups_[g])) {
        if (open > 0) progress_.cohorts += static_cast<int>(std::ceil(open / static_cast<double>(most[g])));
        clock_.work_left += open * static_cast<double>(until - before) * step_work;
        before = until;
        if (request_.config.halving) open = std::ceil(open / static_cast<double>(request_.config.halving->eta));
      }
    }
    observer_.planned(progress_.runs, progress_.ended, progress_.cohorts);
  }

  // Work is only compared with work; a vocabulary that the data will name is taken as small.
  static ModelConfig sized(ModelConfig model) {
    if (model.vocabulary == 0) model.vocabulary = 64;
    return model;
  }

  bool finish_cohorts_under_way() {
    for (const CohortPlan& plan : read_markers(paths_, warn())) {
      const bool known = std::all_of(plan.members.begin(), plan.members.end(),
                                     [&](const std::string& id) { return by_id_.contains(id); });
      if (!known) {
        dissolve(plan);
      } else if (!run_cohort(plan, others_wait(plan))) {
        return false;
      }
    }
    return true;
  }

  bool others_wait(const CohortPlan& plan) {
    const SweepGroup& group = group_of(by_id_.at(plan.members[0]));
    const std::vector<std::int64_t> rungs = rungs_of(group);
    const auto rung = std::lower_bound(rungs.begin(), rungs.end(), plan.until);
    Waiting waiting;
    for (const std::size_t cell : group.cells) {
      const bool member = std::find(plan.members.begin(), plan.members.end(), cells_[cell].id) != plan.members.end();
      if (!member) add_waiting(waiting, {cell}, rung == rungs.end() ? steps_of(group) : *rung);
    }
    return !waiting.empty();
  }

  // A cohort with members that are no longer asked for: the others keep what they have.
  void dissolve(const CohortPlan& plan) {
    const RunView view(paths_.cohort(plan.id));
    if (view.exists()) {
      const CheckpointSearch search = view.newest_checkpoint();
      std::vector<const SweepCell*> cells;
      for (const std::string& id : plan.members) {
        const auto found = by_id_.find(id);
        cells.push_back(found == by_id_.end() ? nullptr : &cells_[found->second]);
      }
      if (search.newest && search.newest->step > plan.from)
        split_cohort(paths_, plan, cells, {.until = search.newest->step, .environment = environment_});
    }
    remove_cohort(paths_, plan.id);
  }

  bool run_group(const SweepGroup& group, std::int64_t most) {
    std::int64_t before = 0;
    for (const std::int64_t until : rungs_of(group)) {
      if (!run_until(group, until, most)) return false;
      if (until < steps_of(group)) halve(group, before, until);
      before = until;
    }
    return true;
  }

  // Those furthest behind go first, as far as the others have come; there all are packed into full cohorts again.
  bool run_until(const SweepGroup& group, std::int64_t until, std::int64_t most) {
    Waiting waiting;
    add_waiting(waiting, by_falling_rate(group.cells), until);
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
      if (is_done(cell)) continue;
      const std::int64_t at = paused_step(paths_, cells_[cell].id, warn());
      if (at < until) waiting[at].push_back(cell);
    }
  }

  // High rates diverge soonest, so that their places come free while others still wait.
  std::vector<std::size_t> by_falling_rate(std::vector<std::size_t> cells) const {
    std::stable_sort(cells.begin(), cells.end(), [&](std::size_t a, std::size_t b) {
      return cells_[a].config.train.lr > cells_[b].config.train.lr;
    });
    return cells;
  }

  CohortPlan begin_cohort(const std::vector<std::size_t>& part, std::int64_t from, std::int64_t until) {
    CohortPlan plan{.id = {}, .members = {}, .from = from, .until = until};
    std::string all = fmt::format("{} {}", from, until);
    std::vector<const SweepCell*> cells;
    for (const std::size_t cell : part) {
      plan.members.push_back(cells_[cell].id);
      cells.push_back(&cells_[cell]);
      all += " " + cells_[cell].id;
    }
    plan.id = fmt::format("{:016x}", hash_name(all));
    if (from > 0) join_cohort(paths_, plan, cohort_config(cells), environment_);
    write_marker(paths_, plan);
    return plan;
  }

  // Until the plan says, or until half of it is idle while others wait. False when it was asked to stop.
  bool run_cohort(const CohortPlan& plan, bool others) {
    std::vector<const SweepCell*> cells;
    for (const std::string& id : plan.members) cells.push_back(&cells_[by_id_.at(id)]);
    const RunConfig config = cohort_config(cells);
    const RunView view(paths_.cohort(plan.id));
    index_->set_status(plan.members, RunStatus::running);
    ++progress_.cohort;
    progress_.cohorts = std::max(progress_.cohorts, progress_.cohort);
    SplitOptions split{.until = 0, .weights = request_.weights, .environment = environment_};
    if (view.exists() && view.is_done()) {
      split.ended = true;
    } else {
      if (stop_) return false;
      CohortWatcher watcher(plan, cells, observer_, progress_, clock_, others, stop_);
      const RunEnd end =
          run_training({.config = config, .directory = paths_.cohort(plan.id), .command_line = request_.command_line},
                       watcher, watcher.halt);
      if (end == RunEnd::interrupted && !watcher.paused) return false;
      split.ended = end == RunEnd::finished;
      split.result = watcher.result;
    }
    split.until = view.checkpoint_steps().back();
    if (split.ended) split.result = view.result();
    const std::vector<std::string> results = split_cohort(paths_, plan, cells, split);
    if (!split.ended && split.until == plan.until && is_rung(plan)) record_rung(plan, view, results);
    remove_cohort(paths_, plan.id);
    for (const std::string& id : plan.members) refresh(by_id_.at(id));
    return true;
  }

  bool is_rung(const CohortPlan& plan) const {
    const std::vector<std::int64_t> rungs = rungs_of(group_of(by_id_.at(plan.members[0])));
    return std::find(rungs.begin(), rungs.end(), plan.until) != rungs.end();
  }

  // What a cohort brings to a rung, before its directory goes.
  void record_rung(const CohortPlan& plan, const RunView& view, const std::vector<std::string>& results) {
    const SafetensorsFile file(view.checkpoint_path(plan.until));
    RungScores scores;
    for (std::size_t i = 0; i < plan.members.size(); ++i)
      scores[plan.members[i]] = {rung_score(file, static_cast<int>(i)), results[i]};
    const std::string key = group_of(by_id_.at(plan.members[0])).key;
    add_scores(paths_.rung(key, plan.until), scores);
  }

  const SweepGroup& group_of(std::size_t cell) const {
    for (const SweepGroup& group : groups_) {
      if (std::find(group.cells.begin(), group.cells.end(), cell) != group.cells.end()) return group;
    }
    throw InternalError("a cell without a group");
  }

  void halve(const SweepGroup& group, std::int64_t before, std::int64_t step) {
    const RungScores scores = read_scores(paths_.rung(group.key, step));
    std::vector<const SweepCell*> cells;
    std::set<std::string> out;
    for (const std::size_t cell : group.cells) {
      cells.push_back(&cells_[cell]);
      if (is_done(cell) && outcomes_[cell].last_step <= before) out.insert(cells_[cell].id);
    }
    for (const std::string& id : hopeless(cells, scores, out, request_.config.halving->eta)) {
      if (is_done(by_id_.at(id))) continue;
      stop_member(paths_, id, scores.at(id).result, step, request_.weights);
      refresh(by_id_.at(id));
    }
  }

  void refresh(std::size_t cell) {
    outcomes_[cell] = read(cells_[cell]);
    index_->put(std::span(&outcomes_[cell], 1));
    if (outcomes_[cell].status == RunStatus::waiting) return;
    ++progress_.ended;
    observer_.ended(outcomes_[cell]);
  }

  const SweepRequest& request_;
  SweepObserver& observer_;
  const std::atomic<bool>& stop_;
  std::vector<SweepCell> cells_;
  std::vector<SweepGroup> groups_;
  SweepPaths paths_;
  std::string environment_;
  std::map<std::string, std::size_t> by_id_;
  std::optional<SweepIndex> index_;
  std::vector<RunOutcome> outcomes_;
  SweepProgress progress_;
  Clock clock_;
};

}  // namespace

SweepResult run_sweep(const SweepRequest& request, SweepObserver& observer, const std::atomic<bool>& stop) {
  try {
    const KeptSchemes kept = schemes_to_resume(request.directory);
    return Sweep(request, observer, stop).run();
  } catch (const fs::filesystem_error& error) {
    fail("{}", error.what());
  }
}

std::vector<RunOutcome> read_outcomes(const SweepConfig& config, const fs::path& directory) {
  const SweepPaths paths{directory};
  std::vector<RunOutcome> outcomes;
  for (const SweepCell& cell : sweep_cells(config))
    outcomes.push_back(read_outcome(outcome_of(cell.id, cell.axes, cell.config), paths.run(cell.id)));
  return outcomes;
}

}  // namespace norma
