// What a denoiser is told beside the noised image: the timestep and, where there are classes, the class.
#pragma once

#include "models/model_builder.h"

namespace norma {

// Inputs "noised", "timestep", "class" where the model has classes, and "answer".
std::vector<InputSpec> denoiser_inputs(const ModelConfig& config);
// Sizes of images, and that the model has no part that only classifiers have.
void check_denoiser(const ModelConfig& config);

// [batch, width]: a perceptron of the timestep's features, plus a row of a table for the class. The table has one row
// more than there are classes, for a class that is hidden.
Wire build_condition(ModelBuilder& builder, std::int64_t width, const SchemeRules& rules);

// Variance that it starts with, of each of its numbers.
double condition_variance(const ModelConfig& config, std::int64_t width, const SchemeRules& rules);

// Whether a formula of the scheme makes anything of a condition.
bool uses_condition(const Scheme& scheme);

}  // namespace norma
