#include "lab/sweep/course.h"

#include <algorithm>
#include <set>

#include "lab/sweep/cohorts.h"
#include "lab/sweep/halving.h"
#include "lab/sweep/mend.h"
#include "lab/sweep/watcher.h"
#include "norma/core/names.h"
#include "norma/train/trainer.h"

namespace norma {

GroupCourse::GroupCourse(const SweepRoom& room, const SweepGroup& group, std::int64_t most_members,
                         std::function<int()> threads)
    : request_(room.request),
      paths_(room.paths),
      ledger_(room.ledger),
      board_(room.board),
      environment_(room.environment),
      group_(group),
      most_(most_members),
      threads_(std::move(threads)) {}

bool GroupCourse::run(const std::vector<CohortPlan>& under_way) {
  for (const CohortPlan& plan : under_way) {
    if (!run_cohort(plan, others_wait(plan))) return false;
  }
  std::int64_t before = 0;
  for (const std::int64_t until : ledger_.rungs_of(group_)) {
    restart_lost(until);
    if (!run_until(until)) return false;
    if (until < ledger_.steps_of(group_)) halve(before, until);
    before = until;
  }
  return true;
}

Warn GroupCourse::warn() {
  return [this](const std::string& what) { board_.warned(what); };
}

bool GroupCourse::others_wait(const CohortPlan& plan) {
  const std::vector<std::int64_t> rungs = ledger_.rungs_of(group_);
  const auto rung = std::lower_bound(rungs.begin(), rungs.end(), plan.until);
  Waiting waiting;
  for (const std::size_t cell : group_.cells) {
    const bool member =
        std::find(plan.members.begin(), plan.members.end(), ledger_.cells()[cell].id) != plan.members.end();
    if (!member) add_waiting(waiting, {cell}, rung == rungs.end() ? ledger_.steps_of(group_) : *rung);
  }
  return !waiting.empty();
}

// A run that has come to its end without a result, or to a rung without a score, lost the cohort that would have
// written it.
void GroupCourse::restart_lost(std::int64_t until) {
  RungScores scores;
  if (until < ledger_.steps_of(group_)) scores = read_scores(paths_.rungs_folder(), rung_name(group_.key, until));
  for (const std::size_t cell : group_.cells) {
    const std::string& id = ledger_.cells()[cell].id;
    const std::vector<std::int64_t> steps = RunView(paths_.run(id)).checkpoint_steps();
    const bool lost = !steps.empty() && steps.back() >= until && !scores.contains(id);
    if (!lost || ledger_.is_done(cell)) continue;
    board_.warned(fmt::format("'{}' lacks what its cohort brought to step {}; it trains again from the start",
                              paths_.run(id).string(), until));
    remove_run(paths_.runs_folder(), id);
  }
}

// Those furthest behind go first, as far as the others have come; there all are packed into full cohorts again.
bool GroupCourse::run_until(std::int64_t until) {
  Waiting waiting;
  add_waiting(waiting, by_falling_rate(ledger_.cells(), group_.cells), until);
  while (!waiting.empty()) {
    const std::int64_t from = waiting.begin()->first;
    std::vector<std::size_t>& cells = waiting.begin()->second;
    const auto end = cells.begin() + even_parts(static_cast<std::int64_t>(cells.size()), most_).front();
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

void GroupCourse::add_waiting(Waiting& waiting, const std::vector<std::size_t>& cells, std::int64_t until) {
  for (const std::size_t cell : cells) {
    if (ledger_.is_done(cell)) continue;
    const std::int64_t at = paused_step(paths_, ledger_.cells()[cell].id, warn());
    if (at < until) waiting[at].push_back(cell);
  }
}

CohortPlan GroupCourse::begin_cohort(const std::vector<std::size_t>& part, std::int64_t from, std::int64_t until) {
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
bool GroupCourse::run_cohort(const CohortPlan& plan, bool others) {
  std::vector<const SweepCell*> cells;
  for (const std::string& id : plan.members) cells.push_back(&ledger_.cell(id));
  const RunConfig config = cohort_config(cells);
  const RunView view(paths_.cohort(plan.id));
  ledger_.set_running(plan.members);
  SplitOptions split{.until = 0, .weights = request_.weights, .environment = environment_};
  const MendedCohort mended = mend_cohort(paths_, plan, config, warn());
  if (mended.state == CohortState::gone) {  // its members wait for another, or have ended
    ledger_.refresh(plan.members);
    return true;
  }
  if (mended.state == CohortState::ended) {
    split.ended = true;
    split.until = mended.step;
  } else if (!train_cohort(plan, cells, config, others, split)) {
    return false;
  }
  if (split.ended) split.result = view.result();
  const std::vector<std::string> results = split_cohort(paths_, plan, cells, split);
  if (!split.ended && split.until == plan.until && ledger_.is_rung(ledger_.index_of(plan.members[0]), plan.until))
    record_rung(plan, view, results);
  remove_cohort(paths_, plan.id);
  refresh(plan.members);
  return true;
}

bool GroupCourse::train_cohort(const CohortPlan& plan, const std::vector<const SweepCell*>& cells,
                               const RunConfig& config, bool others, SplitOptions& split) {
  if (board_.stopping()) return false;
  CohortWatcher watcher(plan, cells, board_, board_.begin_cohort(), others);
  const RunEnd end = run_training({.config = config,
                                   .directory = paths_.cohort(plan.id),
                                   .command_line = request_.command_line,
                                   .recorded_before = plan.from,
                                   .threads = threads_,
                                   .names_leaks = true,
                                   .weights = request_.weights == KeepWeights::yes,
                                   .scores = request_.scores},
                                  watcher, watcher.halt);
  if (end == RunEnd::interrupted && !watcher.paused) return false;
  split.ended = end == RunEnd::finished;
  split.result = watcher.result;
  split.until = RunView(paths_.cohort(plan.id)).checkpoint_steps().back();  // written just now; all later ones are gone
  return true;
}

// What a cohort brings to a rung, before its directory goes.
void GroupCourse::record_rung(const CohortPlan& plan, const RunView& view, const std::vector<std::string>& results) {
  const Checkpoint checkpoint = view.checkpoint(plan.until);
  RungScores scores;
  for (std::size_t i = 0; i < plan.members.size(); ++i)
    scores[plan.members[i]] = {rung_score(checkpoint.file, static_cast<int>(i)), results[i]};
  add_scores(paths_.rungs_folder(), rung_name(group_.key, plan.until), scores);
}

void GroupCourse::halve(std::int64_t before, std::int64_t step) {
  const RungScores scores = read_scores(paths_.rungs_folder(), rung_name(group_.key, step));
  std::vector<const SweepCell*> cells;
  std::set<std::string> out;
  for (const std::size_t cell : group_.cells) {
    cells.push_back(&ledger_.cells()[cell]);
    if (ledger_.is_done(cell) && ledger_.outcomes()[cell].last_step <= before) out.insert(ledger_.cells()[cell].id);
  }
  for (const std::string& id : hopeless(cells, scores, out, request_.config.halving->eta)) {
    if (ledger_.is_done(ledger_.index_of(id))) continue;
    stop_member(paths_, id, scores.at(id).result, step, request_.weights);
    refresh({id});
  }
}

void GroupCourse::refresh(const std::vector<std::string>& ids) {
  ledger_.refresh(ids);
  for (const std::string& id : ids) {
    const RunOutcome& outcome = ledger_.outcomes()[ledger_.index_of(id)];
    if (outcome.status != RunStatus::waiting) board_.ended(outcome);
  }
}

}  // namespace norma
