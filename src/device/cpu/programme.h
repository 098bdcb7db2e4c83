// A member's step cut up for a group of threads: each worker's tiles in order, with barriers between.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/cpu/levels.h"

namespace norma {

// Tiles [begin, end) of one phase; step -1 is a barrier.
struct Piece {
  int step = -1;
  int phase = 0;
  std::int64_t begin = 0, end = 0;
};

// One worker's part of the work between two barriers.
struct Share {
  std::size_t first = 0, end = 0;  // pieces of its list
  std::int64_t tiles = 0;
};

struct Stretch {
  std::vector<Share> shares;  // by worker
  bool free = false;          // tiles may run in any order on any thread, and somebody has several
};

struct Programme {
  std::vector<std::vector<Piece>> workers;
  std::vector<Stretch> stretches;
  double nanoseconds = 0;  // an estimate of one step
};

// Whose tile a tile is follows from the levels and the number of workers, and is the same at every step.
Programme make_programme(std::span<const Level> levels, int workers);

}  // namespace norma
