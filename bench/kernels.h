// Norms, their fusions, and attention, one kernel at a time.
#pragma once

#include "bench/limits.h"

namespace norma::bench {

void bench_norms(Report& report, const Options& options);
void bench_attention(Report& report, const Options& options);

}  // namespace norma::bench
