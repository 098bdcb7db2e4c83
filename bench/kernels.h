// Norms, their fusions, attention and what denoisers need, one kernel at a time.
#pragma once

#include "bench/limits.h"

namespace norma::bench {

void bench_norms(Report& report, const Options& options);
void bench_attention(Report& report, const Options& options);
void bench_conditions(Report& report, const Options& options);  // modulate and upsample

}  // namespace norma::bench
