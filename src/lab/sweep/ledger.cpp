#include "lab/sweep/ledger.h"

#include <algorithm>
#include <set>

#include "lab/sweep/halving.h"
#include "norma/core/error.h"
#include "norma/core/side_by_side.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

// Right answers are spoken of where samples or nodes have a class: of tokens the loss says more. The configuration is
// one whose sizes the data have yet to tell, so this goes by the kind of data.
bool answers_tokens(const RunConfig& config) {
  const std::string& kind = config.model.family->data;
  return (kind == "onward" || kind == "whole" || kind == "paired") && config.data.task != "classification";
}

RunOutcome outcome_in(const SweepPaths& paths, const SweepCell& cell) {
  RunOutcome outcome = read_outcome(outcome_of(cell.id, cell.axes, cell.config), paths.run(cell.id));
  if (answers_tokens(cell.config)) outcome.accuracy.reset();
  return outcome;
}

}  // namespace

SweepLedger::SweepLedger(const SweepConfig& config, const SweepPaths& paths)
    : config_(config), paths_(paths), cells_(sweep_cells(config)), groups_(group_cells(cells_)) {
  for (std::size_t i = 0; i < cells_.size(); ++i) by_id_[cells_[i].id] = i;
}

std::vector<SchemeChoice> SweepLedger::schemes() const {
  std::map<std::string, SchemeChoice> all;
  for (const SweepCell& cell : cells_) all.emplace(cell.config.model.scheme.asked(), cell.config.model.scheme);
  std::vector<SchemeChoice> schemes;
  for (auto& [asked, scheme] : all) schemes.push_back(std::move(scheme));
  return schemes;
}

std::vector<DataConfig> SweepLedger::data() const {
  std::vector<DataConfig> all;
  for (const SweepCell& cell : cells_) all.push_back(cell.config.data);
  return all;
}

const SweepGroup& SweepLedger::group_of(std::size_t cell) const {
  for (const SweepGroup& group : groups_) {
    if (std::find(group.cells.begin(), group.cells.end(), cell) != group.cells.end()) return group;
  }
  throw InternalError("a cell without a group");
}

std::vector<std::int64_t> SweepLedger::rungs_of(const SweepGroup& group) const {
  return rung_steps(config_.halving, steps_of(group));
}

bool SweepLedger::is_rung(std::size_t cell, std::int64_t step) const {
  const std::vector<std::int64_t> rungs = rungs_of(group_of(cell));
  return std::find(rungs.begin(), rungs.end(), step) != rungs.end();
}

CohortLimits SweepLedger::limits(int threads) const {
  std::vector<std::int64_t> bytes(groups_.size(), 0);
  side_by_side(groups_.size(), threads, [&](std::size_t index) {
    const SweepGroup& group = groups_[index];
    if (std::all_of(group.cells.begin(), group.cells.end(), [&](std::size_t i) { return is_done(i); })) return;
    try {
      bytes[index] = member_bytes(cells_[group.cells[0]].config);
    } catch (const Error& error) {
      fail("{}: {}", cells_[group.cells[0]].id, error.what());
    }
  });
  const Device device = config_.base.train.device;
  CohortLimits limits =
      cohort_limits(bytes, threads, config_.most_members, memory_for_cohorts(device), useful_members(device, threads));
  // Halving compares all of a group at every rung, and a GPU is filled by large cohorts.
  if (config_.halving || resolve(device) == Device::cuda) limits.parts = 1;
  return limits;
}

bool SweepLedger::is_done(std::size_t cell) const { return RunView(paths_.run(cells_[cell].id)).is_done(); }

void SweepLedger::open() {
  for (const char* file : {"index.sqlite", "index.sqlite-journal", "index.sqlite-wal", "index.sqlite-shm"}) {
    if (Folder(paths_.root).kind(file) == PathKind::link)
      fail("'{}' is a link; norma follows none inside its own directories", (paths_.root / file).string());
  }
  index_.emplace(paths_.root / "index.sqlite");
  const std::vector<std::string> runs = paths_.runs_folder().names();
  index_->forget_unless([&](const std::string& id) { return std::binary_search(runs.begin(), runs.end(), id); });
  for (const SweepCell& cell : cells_) outcomes_.push_back(outcome_in(paths_, cell));
  index_->put(outcomes_);
}

void SweepLedger::refresh(const std::vector<std::string>& ids) {
  std::vector<RunOutcome> fresh;
  for (const std::string& id : ids) fresh.push_back(outcomes_[index_of(id)] = outcome_in(paths_, cell(id)));
  const std::lock_guard lock(index_mutex_);
  index_->put(fresh);
}

void SweepLedger::set_running(const std::vector<std::string>& ids) {
  const std::lock_guard lock(index_mutex_);
  index_->set_status(ids, RunStatus::running);
}

void SweepLedger::require_ends() const {
  for (const RunOutcome& outcome : outcomes_) {
    if (outcome.status != RunStatus::waiting && outcome.status != RunStatus::running) continue;
    const RunView run(paths_.run(outcome.id));
    fail("'{}' did not come to its end: {}; put back what is missing, or remove it to train it again",
         run.path().string(), !run.is_done() ? "there is no DONE" : "it has DONE, but config.toml is not a file");
  }
}

std::vector<RunOutcome> read_outcomes(const SweepConfig& config, const std::filesystem::path& directory) {
  const SweepPaths paths{directory};
  std::vector<RunOutcome> outcomes;
  for (const SweepCell& cell : sweep_cells(config)) outcomes.push_back(outcome_in(paths, cell));
  return outcomes;
}

}  // namespace norma
