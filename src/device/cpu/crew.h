// The threads of a session, who of them does what, and the memory that each needs for itself.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "device/cpu/arrangement.h"
#include "device/cpu/programme.h"
#include "device/cpu/team.h"
#include "norma/core/arena.h"
#include "norma/graph/plan.h"

namespace norma {

class Crew {
 public:
  Crew(std::shared_ptr<const Plan> plan, int threads);

  int threads() const { return team_->size(); }
  void use_threads(int threads);  // between runs

  // One step of each member, given by the start of its memory. Few members have a group of threads each, many spread
  // over the threads; the bits of a member's results depend on neither.
  void run(std::span<std::byte* const> members, Watching watching);

  // One kernel of one member, on all threads.
  void run_step(const Step& step, std::byte* member);

 private:
  const std::vector<Level>& levels(Watching watching);
  const Programme& programme(int workers, Watching watching);
  const Arrangement& arrangement(int members);
  void run_alone(Watching watching, std::byte* member, int thread);
  void run_shared(const Programme& programme, std::byte* member, const Shift& shift, int thread);
  void run_piece(const Piece& piece, std::int64_t begin, std::int64_t end, std::byte* member, int thread);
  std::byte* scratch(int thread) { return scratch_.data() + thread * scratch_stride_; }

  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Team> team_;
  std::int64_t scratch_stride_;
  Arena scratch_;
  // Made when they are first needed.
  std::array<std::vector<Level>, 2> levels_;
  std::map<std::pair<int, Watching>, Programme> programmes_;
  std::map<int, Arrangement> arrangements_;  // by the number of members, for the team as it is
};

}  // namespace norma
