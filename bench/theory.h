// The theory of deep stacks.
#pragma once

#include "bench/limits.h"

namespace norma::bench {

void bench_theory(Report& report, const Options& options);

}  // namespace norma::bench
