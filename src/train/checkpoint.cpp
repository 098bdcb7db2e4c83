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
          {"evaluation_records", optional_exact(state.evaluation_records)},
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
            {"start", detector.start ? json{exact(detector.start->median), exact(detector.start->noise)} : json()},
            {"watched", detector.watched},
            {"spikes", detector.spikes},
            {"spike_steps", detector.spike_steps}}}};
}

Detector::State detector_state(const json& saved) {
  Detector::State state;
  for (const json& loss : saved.at("window")) state.window.push_back(exact(loss));
  state.first_loss = exact(saved.at("first_loss"));
  if (const auto start = saved.find("start"); start != saved.end() && !start->is_null())
    state.start = Detector::Start{.median = exact(start->at(0)), .noise = exact(start->at(1))};
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
  state.evaluation_records = optional_exact(saved.value("evaluation_records", json()));
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

template <typename Observation>
json observation_json(const Observation& seen) {
  json members = json::array();
  for (const auto& one : seen.members)
    members.push_back({{"taken", one.taken},
                       {"judged", one.judged},
                       {"loss", exact(one.loss)},
                       {"gradient_norm", exact(one.gradient_norm)},
                       {"lr", exact(one.lr)}});
  return {{"step", seen.step}, {"watched", seen.watching == Watching::yes}, {"members", members}};
}

template <typename Observation>
Observation observation(const json& saved) {
  Observation seen{.step = saved.at("step"),
                   .watching = saved.at("watched").get<bool>() ? Watching::yes : Watching::no,
                   .members = {}};
  for (const json& one : saved.at("members"))
    seen.members.push_back({.taken = one.at("taken"),
                            .judged = one.at("judged"),
                            .loss = exact(one.at("loss")),
                            .gradient_norm = exact(one.at("gradient_norm")),
                            .lr = exact(one.at("lr"))});
  return seen;
}

std::string snapshot_name(int member) { return fmt::format("snapshot.{}", member); }
std::string unseen_snapshot_name(int member, std::int64_t step) {
  return fmt::format("snapshot.{}.step.{}", member, step);
}

}  // namespace

std::string checkpoint_name(std::string_view tensor, int member, int members) {
  return members == 1 ? std::string(tensor) : fmt::format("member.{}.{}", member, tensor);
}

std::vector<TensorData> Cohort::checkpoint_tensors() {
  std::vector<TensorData> tensors;
  const auto add_snapshot = [&](std::string name, const Snapshot& snapshot) {
    if (snapshot.bytes.empty()) return;
    tensors.push_back(
        {{std::move(name), ElementType::u8, {static_cast<std::int64_t>(snapshot.bytes.size())}}, snapshot.bytes});
  };
  for (int member = 0; member < members(); ++member) {
    for (const Handle& tensor : handles_.persistent) {
      tensors.push_back(
          {{checkpoint_name(tensor.name(), member, members()), element_type_of(tensor.type().dtype),
            dimensions_of(tensor.type().shape)},
           {},
           [this, &tensor, member](std::span<std::byte> bytes) { session_->read(tensor, member, bytes); }});
    }
    add_snapshot(snapshot_name(member), snapshots_[static_cast<std::size_t>(member)]);
    for (const Observation& unseen : pending_)
      add_snapshot(unseen_snapshot_name(member, unseen.step),
                   unseen.members[static_cast<std::size_t>(member)].snapshot);
  }
  return tensors;
}

Metadata Cohort::checkpoint_metadata() const {
  json state = {{"version", kVersion}, {"step", step_}, {"members", json::array()}};
  for (std::size_t member = 0; member < states_.size(); ++member) {
    const std::int64_t snapshot_step = snapshots_[member].step;
    state["members"].push_back(member_json(states_[member], detectors_[member].state(), snapshot_step));
  }
  for (const Observation& unseen : pending_) state["unseen"].push_back(observation_json(unseen));
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
  std::deque<Observation> pending;
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
    if (state.contains("unseen")) {
      for (const json& unseen : state.at("unseen")) pending.push_back(observation<Observation>(unseen));
    }
    for (const Observation& unseen : pending) {
      if (unseen.members.size() != states_.size())
        fail("'{}' has a damaged training state: a step of {} members", path, unseen.members.size());
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
    const auto read_snapshot = [&](const std::string& name, Snapshot& snapshot) {
      if (!file.contains(name)) return;
      const std::span<const std::byte> bytes = file.bytes(name);
      snapshot.bytes.assign(bytes.begin(), bytes.end());
    };
    read_snapshot(snapshot_name(member), snapshots[static_cast<std::size_t>(member)]);
    for (Observation& unseen : pending) {
      Snapshot& snapshot = unseen.members[static_cast<std::size_t>(member)].snapshot;
      snapshot.step = unseen.step;
      read_snapshot(unseen_snapshot_name(member, unseen.step), snapshot);
    }
  }
  for (int member = 0; member < members(); ++member) {
    const auto index = static_cast<std::size_t>(member);
    for (const Handle& tensor : handles_.persistent)
      session_->stage(tensor, member, file.bytes(checkpoint_name(tensor.name(), member, members())));
    session_->set_active(member, !states[index].diverged);
    detectors_[index].restore(detectors[index]);
  }
  states_ = std::move(states);
  snapshots_ = std::move(snapshots);
  pending_ = std::move(pending);
  staged_ahead_ = -1;
  step_ = step;
}

}  // namespace norma
