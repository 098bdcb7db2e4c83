#include "norma/train/member_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "norma/core/error.h"
#include "norma/train/cohort.h"

namespace norma {
namespace {

using json = nlohmann::json;

constexpr std::string_view kConfigKey = "norma.config";

json training_state(const SafetensorsFile& file) {
  const auto found = file.metadata().find(kTrainingStateKey);
  if (found == file.metadata().end()) fail("'{}' holds weights but no state of training", file.path().string());
  json state = parse_json(found->second);
  if (!state.is_object() || !state.contains("step") || !state["step"].is_number_integer() ||
      !state.contains("members") || !state["members"].is_array() || state["members"].empty())
    fail("'{}' has a damaged training state", file.path().string());
  return state;
}

// The name of a tensor of member `from` of `members` when it is member `to` of `others`; empty for another member's.
std::string renamed(const std::string& name, int from, int members, int to, int others) {
  const std::string snapshot = fmt::format("snapshot.{}", from);
  if (name == snapshot) return fmt::format("snapshot.{}", to);
  if (members == 1) return checkpoint_name(name, to, others);
  const std::string prefix = fmt::format("member.{}.", from);
  return name.starts_with(prefix) ? checkpoint_name(name.substr(prefix.size()), to, others) : "";
}

void take_tensors(const SafetensorsFile& file, int from, int members, int to, int others,
                  std::vector<TensorData>& tensors) {
  for (const TensorInfo& info : file.tensors()) {
    const std::string name = renamed(info.name, from, members, to, others);
    if (!name.empty()) tensors.push_back({{name, info.type, info.shape}, file.bytes(info.name)});
  }
}

}  // namespace

CheckpointParts extract_member(const SafetensorsFile& cohort, int member, const std::string& config) {
  json state = training_state(cohort);
  const int members = static_cast<int>(state["members"].size());
  if (member < 0 || member >= members)
    fail("'{}' holds {} members; there is no member {}", cohort.path().string(), members, member);
  CheckpointParts parts;
  const json one = state["members"][static_cast<std::size_t>(member)];
  if (one.value("diverged", false)) state["step"] = one.at("diverged_at_step");
  parts.step = state["step"];
  state["members"] = json::array({one});
  take_tensors(cohort, member, members, 0, 1, parts.tensors);
  parts.metadata = {{kTrainingStateKey, state.dump()}, {std::string(kConfigKey), config}};
  return parts;
}

CheckpointParts join_members(std::span<const SafetensorsFile> members, const std::string& config) {
  NORMA_ASSERT(!members.empty());
  CheckpointParts parts;
  json state;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const json one = training_state(members[i]);
    if (one["members"].size() != 1)
      fail("'{}' holds {} members; expected one", members[i].path().string(), one["members"].size());
    if (i == 0) {
      state = one;
    } else {
      if (one["step"] != state["step"])
        fail("'{}' is at step {} but '{}' at step {}", members[i].path().string(), one["step"].dump(),
             members[0].path().string(), state["step"].dump());
      state["members"].push_back(one["members"][0]);
    }
    take_tensors(members[i], 0, 1, static_cast<int>(i), static_cast<int>(members.size()), parts.tensors);
  }
  parts.step = state["step"];
  parts.metadata = {{kTrainingStateKey, state.dump()}, {std::string(kConfigKey), config}};
  return parts;
}

double median_loss(const SafetensorsFile& file, int member) {
  const json state = training_state(file);
  std::vector<double> window;
  try {
    const json& one = state["members"].at(static_cast<std::size_t>(member));
    if (one.at("diverged") == true) return std::numeric_limits<double>::quiet_NaN();
    for (const json& loss : one.at("detector").at("window"))
      window.push_back(std::strtod(loss.get_ref<const std::string&>().c_str(), nullptr));
  } catch (const json::exception& error) {
    fail("'{}' has a damaged training state: {}", file.path().string(), error.what());
  }
  if (window.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = window.begin() + static_cast<std::ptrdiff_t>(window.size() / 2);
  std::nth_element(window.begin(), middle, window.end());
  return *middle;
}

}  // namespace norma
