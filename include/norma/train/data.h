// The data of a run: which tasks suit which models, in one place for everything that trains.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "norma/data/source.h"
#include "norma/train/config.h"

namespace norma {

// As data.task: what is usual for the kind of data that the model's family reads. Generated, or of data.path, where
// that is set.
inline constexpr const char* kFamilyTask = "auto";

// Puts a name in the place of "auto".
RunConfig settle_task(RunConfig config);

// Throws Error that names family, task and what would suit, when the model cannot learn the task or would see its
// answers.
void check_task(const RunConfig& settled);

// Throws Error for a batch that the family cannot have: of a single whole graph there is one.
void require_batch(const ModelConfig& model);

// Sizes that only the data knows, vocabulary and classes among them. Throws Error where the model's own do not fit.
void take_sizes(const Source& source, ModelConfig& model);

// Throws Error that names the tensor where the data have not what the model reads, and where the first batch asks for
// nothing.
void check_reads(const ModelConfig& model, const Source& source);

// Why no model can learn anything from these data, as far as their first batches show: all answers are the same, or all
// questions of a classifier are, as where there is nothing but padding. Nothing: there may be something to learn.
std::optional<std::string> nothing_to_learn(const Source& source, const ModelConfig& model, std::uint64_t seed);

// What tasks of tokens must know of a model: its batch, and how long its rows of "tokens" and "source" are, if any.
BatchShape batch_shape(const ModelConfig& model);

// The data to train on, settled and checked.
std::shared_ptr<const Source> open_data(const RunConfig& config);

}  // namespace norma
