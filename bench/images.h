// Whole training steps of image classifiers, and convolutions and pools by themselves.
#pragma once

#include "bench/limits.h"

namespace norma::bench {

void bench_images(Report& report, const Options& options);
void bench_convolutions(Report& report, const Options& options);

}  // namespace norma::bench
