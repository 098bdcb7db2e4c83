// The checkpoint of a cohort taken apart into its members and put together again, without building the models. A member
// taken out is the checkpoint of the same run alone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "norma/store/safetensors_writer.h"

namespace norma {

// Key in the metadata under which everything but weights and optimiser states is kept.
inline constexpr const char* kTrainingStateKey = "norma.training";

// The tensors are views of the files they came from.
struct CheckpointParts {
  std::int64_t step = 0;
  std::vector<TensorData> tensors;
  Metadata metadata;
};

// `config`: text of the member's own configuration. The parts are to be written under a checksum of their own, so
// compare that of `cohort` first. A member that has diverged is at the step where it did.
CheckpointParts extract_member(const SafetensorsFile& cohort, int member, const std::string& config);

// Members at one step, in the order of the cohort to be; compare their checksums first. Throws Error when their steps
// differ.
CheckpointParts join_members(std::span<const SafetensorsFile> members, const std::string& config);

// The step at which a member diverged; none: it has not.
std::optional<std::int64_t> diverged_at(const SafetensorsFile& file, int member);

// The rolling median of a member's training loss, as its detector saw it last; NaN before the first step and after
// divergence.
double median_loss(const SafetensorsFile& file, int member);

}  // namespace norma
