// Whole training steps of image classifiers.
#pragma once

#include "bench/limits.h"

namespace norma::bench {

void bench_images(Report& report, const Options& options);

}  // namespace norma::bench
