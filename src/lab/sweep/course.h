// The course of one group of a sweep, cells that share a program: cohorts under way first, then rung by rung.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lab/sweep/board.h"
#include "lab/sweep/ledger.h"
#include "lab/sweep/members.h"
#include "norma/lab/sweep.h"

namespace norma {

// What the groups of a sweep have in common.
struct SweepRoom {
  const SweepRequest& request;
  const SweepPaths& paths;
  SweepLedger& ledger;
  SweepBoard& board;
  const std::string& environment;
};

class GroupCourse {
 public:
  // `threads`: how many its cohorts may use now.
  GroupCourse(const SweepRoom& room, const SweepGroup& group, std::int64_t most_members, std::function<int()> threads);

  // False when it was asked to stop.
  bool run(const std::vector<CohortPlan>& under_way);

 private:
  using Waiting = std::map<std::int64_t, std::vector<std::size_t>>;  // cells by the step they have reached

  Warn warn();
  bool others_wait(const CohortPlan& plan);
  void restart_lost(std::int64_t until);
  bool run_until(std::int64_t until);
  void add_waiting(Waiting& waiting, const std::vector<std::size_t>& cells, std::int64_t until);
  CohortPlan begin_cohort(const std::vector<std::size_t>& part, std::int64_t from, std::int64_t until);
  bool run_cohort(const CohortPlan& plan, bool others);
  bool train_cohort(const CohortPlan& plan, const std::vector<const SweepCell*>& cells, const RunConfig& config,
                    bool others, SplitOptions& split);
  void record_rung(const CohortPlan& plan, const RunView& view, const std::vector<std::string>& results);
  void halve(std::int64_t before, std::int64_t step);
  void refresh(const std::vector<std::string>& ids);

  const SweepRequest& request_;
  const SweepPaths& paths_;
  SweepLedger& ledger_;
  SweepBoard& board_;
  const std::string& environment_;
  const SweepGroup& group_;
  std::int64_t most_;
  std::function<int()> threads_;
};

}  // namespace norma
