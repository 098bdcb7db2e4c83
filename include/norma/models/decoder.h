// A model's whole training step as one graph.
#pragma once

#include <memory>
#include <vector>

#include "norma/graph/plan.h"
#include "norma/models/model.h"

namespace norma {

// Loss, gradients and AdamW. Further inputs: "control" (AdamWControl). Output: "loss".
struct TrainingStep {
  std::shared_ptr<const Plan> plan;
  std::vector<ParameterSpec> parameters;
};
TrainingStep build_training_step(const ModelConfig& config, const CompileOptions& options);

}  // namespace norma
