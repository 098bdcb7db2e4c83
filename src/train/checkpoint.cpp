// A cohort as a safetensors file and back: weights and optimiser states by name, everything else as JSON beside them.
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "norma/train/cohort.h"
#include "norma/train/member_checkpoint.h"

namespace norma {
namespace {

using json = nlohmann::json;

constexpr int kVersion = 1;

// Doubles as text that reads back to the same bits, NaN and infinity included.
json exact(double value) { return fmt::format("{}", value); }
double exact(const json& value) { return std::strtod(value.get_ref<const std::string&>().c_str(), nullptr); }

json optional_exact(const std::optional<double>& value) { return value ? exact(*value) : json(); }
std::optional<double> optional_exact(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(exact(value));
}

json member_json(const MemberState& state, const Detector::State& detector, std::int64_t snapshot_step) {
  json window = json::array();
  for (const double loss : detector.window) window.push_back(exact(loss));
  return {{"loss", exact(state.loss)},
          {"gradient_norm", exact(state.gradient_norm)},
          {"lr", exact(state.lr)},
          {"best_loss", exact(state.best_loss)},
          {"evaluation_loss", optional_exact(state.evaluation_loss)},
          {"best_evaluation_loss", optional_exact(state.best_evaluation_loss)},
          {"evaluation_accuracy", optional_exact(state.evaluation_accuracy)},
          {"diverged", state.diverged},
          {"diverged_at_step", state.diverged_at_step},
          {"diverged_because", state.diverged_because},
          {"first_bad_wire", state.first_bad_wire},
          {"lr_factor", exact(state.lr_factor)},
          {"actions", state.actions},
          {"skipped_steps", state.skipped_steps},
          {"snapshot_step", snapshot_step},
          {"detector",
           {{"window", window},
            {"first_loss", exact(detector.first_loss)},
            {"watched", detector.watched},
            {"spikes", detector.spikes},
            {"spike_steps", detector.spike_steps}}}};
}

Detector::State detector_state(const json& saved) {
  Detector::State state;
  for (const json& loss : saved.at("window")) state.window.push_back(exact(loss));
  state.first_loss = exact(saved.at("first_loss"));
  state.watched = saved.at("watched");
  state.spikes = saved.at("spikes");
  state.spike_steps = saved.at("spike_steps");
  return state;
}

MemberState member_state(const json& saved) {
  MemberState state;
  state.loss = exact(saved.at("loss"));
  state.gradient_norm = exact(saved.at("gradient_norm"));
  state.lr = exact(saved.at("lr"));
  state.best_loss = exact(saved.at("best_loss"));
  state.evaluation_loss = optional_exact(saved.at("evaluation_loss"));
  state.best_evaluation_loss = optional_exact(saved.at("best_evaluation_loss"));
  state.evaluation_accuracy = optional_exact(saved.value("evaluation_accuracy", json()));
  state.diverged = saved.at("diverged");
  state.diverged_at_step = saved.at("diverged_at_step");
  state.diverged_because = saved.at("diverged_because");
  state.first_bad_wire = saved.at("first_bad_wire");
  state.lr_factor = exact(saved.at("lr_factor"));
  state.actions = saved.at("actions");
  state.skipped_steps = saved.at("skipped_steps");
  state.spikes = saved.at("detector").at("spikes");
  return state;
}

std::string snapshot_name(int member) { return fmt::format("snapshot.{}", member); }

}  // namespace

std::string checkpoint_name(std::string_view tensor, int member, int members) {
  return members == 1 ? std::string(tensor) : fmt::format("member.{}.{}", member, tensor);
}

std::vector<TensorData> Cohort::checkpoint_tensors() {
  std::vector<TensorData> tensors;
  for (int member = 0; member < members(); ++member) {
    for (const std::string& name : persistent_) {
      const Type& type = plan_.plan->slot(name).type;
      tensors.push_back(
          {{checkpoint_name(name, member, members()), element_type_of(type.dtype), dimensions_of(type.shape)},
           session_.bytes(name, member)});
    }
    const Snapshot& snapshot = snapshots_[static_cast<std::size_t>(member)];
    if (!snapshot.bytes.empty())
      tensors.push_back({{snapshot_name(member), ElementType::u8, {static_cast<std::int64_t>(snapshot.bytes.size())}},
                         snapshot.bytes});
  }
  return tensors;
}

Metadata Cohort::checkpoint_metadata() const {
  json state = {{"version", kVersion}, {"step", step_}, {"members", json::array()}};
  for (std::size_t member = 0; member < states_.size(); ++member) {
    const std::int64_t snapshot_step = snapshots_[member].step;
    state["members"].push_back(member_json(states_[member], detectors_[member].state(), snapshot_step));
  }
  return {{kTrainingStateKey, state.dump()}, {"norma.config", print_config(config_)}};
}

void Cohort::restore(const SafetensorsFile& file) {
  file.verify_checksum();
  const std::string path = file.path().string();
  const auto found = file.metadata().find(kTrainingStateKey);
  if (found == file.metadata().end()) fail("'{}' holds weights but no state of training to resume from", path);
  const json state = parse_json(found->second);
  std::vector<MemberState> states;
  std::vector<Detector::State> detectors;
  std::vector<Snapshot> snapshots(states_.size());
  std::int64_t step = 0;
  try {
    if (state.at("version") != kVersion)
      fail("'{}' has version {} of the training state; expected {}", path, state.at("version").dump(), kVersion);
    step = state.at("step");
    if (state.at("members").size() != states_.size())
      fail("'{}' holds {} members but the configuration has {}", path, state.at("members").size(), states_.size());
    for (const json& member : state.at("members")) {
      states.push_back(member_state(member));
      detectors.push_back(detector_state(member.at("detector")));
      snapshots[states.size() - 1].step = member.at("snapshot_step");
    }
  } catch (const json::exception& error) {
    fail("'{}' has a damaged training state: {}", path, error.what());
  }
  // Everything is looked at before anything is changed.
  for (int member = 0; member < members(); ++member) {
    for (const std::string& name : persistent_) {
      const Type& type = plan_.plan->slot(name).type;
      const TensorInfo& info = file.info(checkpoint_name(name, member, members()));
      if (info.type != element_type_of(type.dtype) || info.shape != dimensions_of(type.shape))
        fail("'{}': '{}' is {} but the model has {}", path, info.name, info.str(), type.str());
    }
    if (file.contains(snapshot_name(member))) {
      const std::span<const std::byte> bytes = file.bytes(snapshot_name(member));
      snapshots[static_cast<std::size_t>(member)].bytes.assign(bytes.begin(), bytes.end());
    }
  }
  for (int member = 0; member < members(); ++member) {
    const auto index = static_cast<std::size_t>(member);
    for (const std::string& name : persistent_) {
      const std::span<const std::byte> bytes = file.bytes(checkpoint_name(name, member, members()));
      std::copy(bytes.begin(), bytes.end(), session_.bytes(name, member).begin());
    }
    session_.set_active(member, !states[index].diverged);
    detectors_[index].restore(detectors[index]);
  }
  states_ = std::move(states);
  snapshots_ = std::move(snapshots);
  step_ = step;
}

}  // namespace norma
