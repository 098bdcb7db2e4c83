// Where the time of a training step goes: by kind of kernel, and waiting at barriers.
#pragma once

#include "bench/limits.h"
#include "norma/models/model.h"

namespace norma::bench {

// Adds split/<name>/...: sgemm and the step in turns; the step as if nobody waited; and of the time of all kernels the
// share of each kind, with the rate of those that are products.
void bench_split(Report& report, const std::string& name, const ModelConfig& config, const Options& options);

}  // namespace norma::bench
