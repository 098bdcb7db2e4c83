// Whole training steps.
#pragma once

#include "bench/limits.h"
#include "norma/train/step.h"

namespace norma::bench {

void bench_steps(Report& report, const Options& options);

// Random tokens, initial weights and a first control block.
void prepare_step(Session& session, const TrainingStep& step, const ModelConfig& config);

}  // namespace norma::bench
