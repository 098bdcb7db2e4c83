// What tests of networks that read images share.
#pragma once

#include <cmath>
#include <string>

#include "models/model_check.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"

namespace norma::test {

inline ModelConfig tiny_resnet(const std::string& scheme, DType dtype = DType::f32) {
  ModelConfig config = tiny("resnet", scheme, dtype);
  config.width = 4;
  set_size(config, "image_height", 6);
  set_size(config, "image_width", 5);
  set_size(config, "image_channels", 3);
  return config;
}

// Trains to the end and expects the best accuracy that the task allows, within four deviations of what its held-out
// batches tell, and 5 % for what training leaves. How far the loss is from its optimum.
inline double expect_best_accuracy(const RunConfig& config) {
  const auto source = open_data(config);
  Cohort cohort(config, source);
  while (cohort.step() < config.train.steps) cohort.train_step();
  cohort.evaluate();
  const MemberState& state = cohort.member(0);
  const double best = *source->best_accuracy(), rows = 8 * static_cast<double>(config.model.batch);
  EXPECT_FALSE(state.diverged);
  EXPECT_GT(*state.evaluation_accuracy, best - 4 * std::sqrt(best * (1 - best) / rows) - 0.05);
  EXPECT_LT(*state.evaluation_accuracy, best + 4 * std::sqrt(best * (1 - best) / rows) + 0.01);
  return *state.evaluation_loss - *source->optimum();
}

}  // namespace norma::test
