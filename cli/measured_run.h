// What a process of its own takes for a run: memory and time, by taking a few steps of it.
#pragma once

#include <cstdint>

#include "norma/train/config.h"

namespace norma::cli {

struct MeasuredRun {
  std::int64_t peak_bytes = 0;  // of the whole process
  double seconds_per_step = 0;
};

// `norma train` of the first `steps` steps, in a temporary folder. Throws Error when it fails, with what it said.
MeasuredRun measure_run(RunConfig config, std::int64_t steps);

// Memory that this process has now, its program and libraries included.
std::int64_t resident_bytes();

}  // namespace norma::cli
