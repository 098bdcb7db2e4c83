// Whole training steps.
#pragma once

#include "bench/limits.h"

namespace norma::bench {

void bench_steps(Report& report, const Options& options);

}  // namespace norma::bench
