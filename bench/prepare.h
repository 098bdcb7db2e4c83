// A session made ready to take training steps.
#pragma once

#include "norma/device/session.h"
#include "norma/train/step.h"

namespace norma::bench {

// Random inputs of the family, initial weights and a first control block.
void prepare(Session& session, const TrainingStep& step, const ModelConfig& config);

}  // namespace norma::bench
