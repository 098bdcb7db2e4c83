// The cells of a sweep: which programs they share, how far each has come, and the index that tells others.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lab/sweep/cohorts.h"
#include "lab/sweep/index.h"
#include "lab/sweep/members.h"
#include "norma/lab/sweep.h"

namespace norma {

class SweepLedger {
 public:
  SweepLedger(const SweepConfig& config, const SweepPaths& paths);

  const std::vector<SweepCell>& cells() const { return cells_; }
  const std::vector<SweepGroup>& groups() const { return groups_; }
  const std::vector<RunOutcome>& outcomes() const { return outcomes_; }  // by cell, once open
  std::vector<SchemeChoice> schemes() const;                             // each once
  std::vector<DataConfig> data() const;                                  // of every cell

  bool knows(const std::string& id) const { return by_id_.contains(id); }
  std::size_t index_of(const std::string& id) const { return by_id_.at(id); }
  const SweepCell& cell(const std::string& id) const { return cells_[index_of(id)]; }
  const SweepGroup& group_of(std::size_t cell) const;
  std::int64_t steps_of(const SweepGroup& group) const { return cells_[group.cells[0]].config.train.steps; }
  std::vector<std::int64_t> rungs_of(const SweepGroup& group) const;
  bool is_rung(std::size_t cell, std::int64_t step) const;
  bool is_done(std::size_t cell) const;

  // Every program that has a cell to train is built once, so that a mistake in any cell is found before anything is
  // written; throws Error then.
  CohortLimits limits(int threads) const;

  // Reads how far every cell has come, and opens the index. The directory exists by now.
  void open();
  // These two may be called by several threads at once, each for cells that are its own.
  void refresh(const std::vector<std::string>& ids);
  void set_running(const std::vector<std::string>& ids);
  // Whatever was damaged: results without some of the runs are never taken for the whole. Throws Error.
  void require_ends() const;
  void nobody_runs() { index_->put(outcomes_); }

 private:
  const SweepConfig& config_;
  const SweepPaths& paths_;
  std::vector<SweepCell> cells_;
  std::vector<SweepGroup> groups_;
  std::map<std::string, std::size_t> by_id_;
  std::optional<SweepIndex> index_;
  std::mutex index_mutex_;
  std::vector<RunOutcome> outcomes_;
};

}  // namespace norma
