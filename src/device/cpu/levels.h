// Which phases of a plan may run at the same time. A phase stands one level behind the last one whose memory it touches
// (reads after writes, writes after either), a first phase that prepares one input behind that input's memory alone;
// phases of one level touch nothing of each other's, so one barrier between levels is enough, however many kernels a
// level holds.
#pragma once

#include <cstdint>
#include <vector>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/plan.h"

namespace norma {

// One phase of one step.
struct Task {
  int step = 0;  // index into Plan::steps()
  int phase = 0;
  std::int64_t tiles = 0;
  double tile_ns = 0;  // an estimate: it decides who runs a tile, never what comes out
};

using Level = std::vector<Task>;  // in the order of the plan

// The plan must have been made for the CPU.
const std::vector<Phase>& phases_of(const Step& step);

std::vector<Level> dependency_levels(const Plan& plan, Watching watching);

}  // namespace norma
