// What neighbours and segments come to, one kernel at a time, and training steps of graph networks.
#pragma once

#include "bench/limits.h"

namespace norma::bench {

void bench_graphs(Report& report, const Options& options);

}  // namespace norma::bench
