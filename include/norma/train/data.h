// The data of a run: which tasks suit which models, in one place for everything that trains.
#pragma once

#include <memory>

#include "norma/data/source.h"
#include "norma/train/config.h"

namespace norma {

// As data.task: what is usual for the model's family. Generated, grammar, masked_grammar or sort; of data.path, where
// that is set, text, masked or translation.
inline constexpr const char* kFamilyTask = "auto";

// Puts a name in the place of "auto".
RunConfig settle_task(RunConfig config);

// Throws Error that names family, task and what would suit, when the model cannot learn the task or would see its
// answers.
void check_task(const RunConfig& settled);

// What a model reads at a time; only an encoder-decoder has a source.
BatchShape batch_shape(const ModelConfig& model);

// The data to train on, settled and checked.
std::shared_ptr<const Source> open_data(const RunConfig& config);

}  // namespace norma
