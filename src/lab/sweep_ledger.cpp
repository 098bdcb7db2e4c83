#include "lab/sweep_ledger.h"

#include <algorithm>
#include <set>

#include "lab/sweep_halving.h"
#include "norma/core/error.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

RunOutcome outcome_in(const SweepPaths& paths, const SweepCell& cell) {
  return read_outcome(outcome_of(cell.id, cell.axes, cell.config), paths.run(cell.id));
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

const SweepGroup& SweepLedger::group_of(std::size_t cell) const {
  for (const SweepGroup& group : groups_) {
    if (std::find(group.cells.begin(), group.cells.end(), cell) != group.cells.end()) return group;
  }
  throw InternalError("a cell without a group");
}

std::vector<std::int64_t> SweepLedger::rungs_of(const SweepGroup& group) const {
  return rung_steps(config_.halving, steps_of(group));
}

bool SweepLedger::is_done(std::size_t cell) const { return RunView(paths_.run(cells_[cell].id)).is_done(); }

void SweepLedger::open() {
  index_.emplace(paths_.root / "index.sqlite");
  for (const SweepCell& cell : cells_) outcomes_.push_back(outcome_in(paths_, cell));
  index_->put(outcomes_);
}

const RunOutcome& SweepLedger::refresh(std::size_t cell) {
  outcomes_[cell] = outcome_in(paths_, cells_[cell]);
  index_->put(std::span(&outcomes_[cell], 1));
  return outcomes_[cell];
}

std::vector<RunOutcome> read_outcomes(const SweepConfig& config, const std::filesystem::path& directory) {
  const SweepPaths paths{directory};
  std::vector<RunOutcome> outcomes;
  for (const SweepCell& cell : sweep_cells(config)) outcomes.push_back(outcome_in(paths, cell));
  return outcomes;
}

}  // namespace norma
