// The names of the files of a run: whatever else lies in its directory is not norma's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace norma {

inline constexpr const char *kConfigName = "config.toml", *kSchemeName = "scheme.toml",
                            *kEnvironmentName = "environment.json", *kDataName = "data.json",
                            *kMetricsName = "metrics.jsonl", *kSealName = "metrics.sum",
                            *kCheckpointsName = "checkpoints", *kTokenizerName = "tokenizer.model",
                            *kVocabularyName = "vocabulary.json", *kResultName = "result.json", *kDoneName = "DONE";

bool is_run_file(const std::string& name);   // but the folder of checkpoints
bool is_beginning(const std::string& name);  // of those that are written before config.toml

std::string checkpoint_file_name(std::int64_t step);
std::optional<std::int64_t> checkpoint_file_step(const std::string& name);  // none: not a checkpoint

}  // namespace norma
