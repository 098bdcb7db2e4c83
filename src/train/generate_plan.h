// Forward plans for generation, cut out of a whole model's graph.
#pragma once

#include <memory>
#include <vector>

#include "norma/graph/plan.h"
#include "norma/models/model.h"

namespace norma {

struct ForwardPlan {
  std::shared_ptr<const Plan> plan;
  std::vector<Schedule> schedules;
};

// Of an encoder-decoder: inputs "source" i32[batch, source_time], "source_lengths" i32[batch]; output "memory"
// [batch, source_time, width].
ForwardPlan encoder_plan(const ModelConfig& config, const Backend& backend);

// Inputs "tokens" i32[batch, time] and "positions" i32[batch], rows of [batch * time]; of an encoder-decoder also
// "memory" and "source_lengths". Outputs "logits" and "probabilities" [batch, vocabulary] of the token that follows
// each position.
ForwardPlan decoder_plan(const ModelConfig& config, const Backend& backend);

}  // namespace norma
