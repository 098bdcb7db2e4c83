// Training steps on a GPU, and where their time goes. Only in builds with CUDA.
#pragma once

#include "bench/limits.h"

namespace norma::bench {

// The card's copy bandwidth and the rates of its matrix products.
void measure_gpu_limits(Report& report, const Options& options);
void bench_gpu_steps(Report& report, const Options& options);

}  // namespace norma::bench
