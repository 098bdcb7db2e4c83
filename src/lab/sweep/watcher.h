// Looks at a cohort of a sweep while it trains: tells the board, says when it pauses.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "lab/sweep/board.h"
#include "lab/sweep/members.h"
#include "norma/train/trainer.h"

namespace norma {

class CohortWatcher final : public RunObserver {
 public:
  // `others_wait`: cells of the same program could fill idle places.
  CohortWatcher(const CohortPlan& plan, const std::vector<const SweepCell*>& cells, SweepBoard& board, int number,
                bool others_wait);

  void started(const Cohort& cohort, const Source& source) override;
  void warned(const std::string& what) override { board_.warned(what); }
  void stepped(const Cohort& cohort, double seconds) override;
  void happened(const MemberEvent& event) override;
  void saved(std::int64_t step) override;

  std::atomic<bool> halt{false};
  bool paused = false;
  std::string result;  // at the pause, of what the last checkpoint holds

 private:
  void look(const Cohort& cohort);

  const CohortPlan& plan_;
  const std::vector<const SweepCell*>& cells_;
  SweepBoard& board_;
  int number_;
  bool others_wait_;
  const Cohort* cohort_ = nullptr;
  const Source* source_ = nullptr;
  double seconds_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace norma
