// Which threads work on which members. Members of one round run side by side, each with a group of threads of its own.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/cpu/handout.h"

namespace norma {

// What one thread does in one round.
struct Shift {
  int member = 0;  // index among the active members
  int rank = 0;    // in its group
  int workers = 1;
  Group* group = nullptr;  // null where it is alone
};

struct Arrangement {
  std::vector<std::vector<Shift>> workers;  // each thread's rounds, in order
  std::vector<std::unique_ptr<Group>> groups;
};

// The number of members in each round, most first, so that all rounds together take the least time: `time(workers)` is
// that of one member's step on so many threads. The later rounds have the larger groups.
std::vector<int> choose_rounds(int members, int threads, const std::function<double(int workers)>& time);

Arrangement arrange(int members, int threads, const std::function<double(int workers)>& time);

}  // namespace norma
