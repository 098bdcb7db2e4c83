// Tiles of a stretch of work between two barriers, handed out while it runs: a worker begins with those meant for it,
// in order, and then helps those that are behind. Who runs a tile shows in the time that a step takes and in nothing
// else.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "device/cpu/barrier.h"

namespace norma {

class Handout {
 public:
  explicit Handout(int workers) : counts_(static_cast<std::size_t>(workers)) {}

  // To be called by every worker at the start of every stretch, between barriers of all. Readies its own counter for
  // the stretch after this one: nobody looks at that before the next barrier.
  int open(int worker) {
    Counts& own = counts_[static_cast<std::size_t>(worker)];
    own.stretch ^= 1;
    own.taken[static_cast<std::size_t>(own.stretch ^ 1)].value.store(0, std::memory_order_relaxed);
    return own.stretch;
  }

  struct Range {
    std::int64_t first = 0, count = 0;
  };

  // The next of `tiles` tiles that are meant for `owner`: half of what is left where it takes them itself, so that they
  // run together, and one where another helps. None: all are taken.
  Range take(int owner, int stretch, std::int64_t tiles, bool itself) {
    std::atomic<std::uint32_t>& taken =
        counts_[static_cast<std::size_t>(owner)].taken[static_cast<std::size_t>(stretch)].value;
    const std::int64_t left = tiles - taken.load(std::memory_order_relaxed);
    if (left <= 0) return {};
    const std::int64_t wanted = itself ? (left + 1) / 2 : 1;
    const std::int64_t first = taken.fetch_add(static_cast<std::uint32_t>(wanted), std::memory_order_relaxed);
    return {first, std::clamp<std::int64_t>(tiles - first, 0, wanted)};
  }

 private:
  // Two counters in turns.
  struct Counts {
    std::array<LonelyWord, 2> taken;
    int stretch = 0;  // the one in use; its worker's alone
  };
  std::vector<Counts> counts_;
};

// The threads that share a member.
struct Group {
  explicit Group(int workers) : barrier(workers), handout(workers) {}

  Barrier barrier;
  Handout handout;
};

}  // namespace norma
