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

struct Programme {
  std::vector<std::vector<Piece>> workers;
  double nanoseconds = 0;  // an estimate of one step
};

// Who runs a tile follows from the levels and the number of workers, and is the same at every step.
Programme make_programme(std::span<const Level> levels, int workers);

}  // namespace norma
