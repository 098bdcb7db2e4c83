// What becomes of a member whose loss went astray: a second chance, or its end.
#include <algorithm>
#include <cmath>

#include "norma/train/cohort.h"

namespace norma {
namespace {

// The first element of a tensor that is NaN or infinite.
template <typename T>
std::optional<NonFinite> first_bad_in(Session& session, const std::string& name, int member) {
  const std::span<const T> values = session.tensor<T>(name, member);
  const auto bad = std::find_if(values.begin(), values.end(), [](T value) { return !std::isfinite(value); });
  if (bad == values.end()) return std::nullopt;
  return NonFinite{.member = member, .wire = name, .index = bad - values.begin(), .value = static_cast<double>(*bad)};
}

}  // namespace

void Cohort::judge(int member, std::vector<MemberEvent>& events) {
  MemberState& state = states_[static_cast<std::size_t>(member)];
  Detector& detector = detectors_[static_cast<std::size_t>(member)];
  const std::int64_t spikes = detector.spikes();
  const std::optional<Astray> why = detector.watch(state.loss, state.gradient_norm);
  state.spikes = detector.spikes();
  if (state.spikes > spikes)
    events.push_back(
        {step_, member, "spike", fmt::format("loss {:.4g}, rolling median {:.4g}", state.loss, detector.median())});
  if (state.loss < state.best_loss) state.best_loss = state.loss;
  if (!why) return;
  if (const auto action = recover(member, *why)) {
    events.push_back(*action);
  } else {
    events.push_back(freeze(member, *why));
  }
}

std::optional<MemberEvent> Cohort::recover(int member, Astray why) {
  MemberState& state = states_[static_cast<std::size_t>(member)];
  const DetectConfig& detect = config_.detect;
  if (detect.recovery == Recovery::none || state.actions >= detect.most_actions) return std::nullopt;
  if (detect.recovery == Recovery::skip && !keeps_weights(why)) return std::nullopt;
  ++state.actions;
  MemberEvent event{step_, member, "", std::string(name_of(why))};
  if (keeps_weights(why)) ++state.skipped_steps;
  if (detect.recovery == Recovery::skip) {
    event.what = "skipped step";
    return event;
  }
  state.lr_factor *= detect.lr_factor;
  detectors_[static_cast<std::size_t>(member)].restart();
  if (detect.recovery == Recovery::lower_lr) {
    event.what = fmt::format("lowered learning rate to {:.4g} of its schedule", state.lr_factor);
    return event;
  }
  const Snapshot& snapshot = snapshots_[static_cast<std::size_t>(member)];
  std::size_t at = 0;
  for (const std::string& name : persistent_) {
    const std::span<std::byte> target = session_.bytes(name, member);
    std::copy_n(snapshot.bytes.begin() + static_cast<std::ptrdiff_t>(at), target.size(), target.begin());
    at += target.size();
  }
  event.what =
      fmt::format("rolled back to step {}, learning rate at {:.4g} of its schedule", snapshot.step, state.lr_factor);
  return event;
}

void Cohort::take_snapshot(int member) {
  if (first_bad_parameter(member)) return;  // the last update went too far: what there is to go back to stays
  Snapshot& snapshot = snapshots_[static_cast<std::size_t>(member)];
  snapshot.step = step_;
  snapshot.bytes.clear();
  for (const std::string& name : persistent_) {
    const std::span<std::byte> bytes = session_.bytes(name, member);
    snapshot.bytes.insert(snapshot.bytes.end(), bytes.begin(), bytes.end());
  }
}

std::optional<NonFinite> Cohort::first_bad_parameter(int member) {
  for (const ParameterSpec& spec : plan_.parameters) {
    const auto bad = config_.model.dtype == DType::f32 ? first_bad_in<float>(session_, spec.name, member)
                                                       : first_bad_in<double>(session_, spec.name, member);
    if (bad) return bad;
  }
  return std::nullopt;
}

// The weights are those before the step, so that it can be taken again, one node at a time.
std::optional<NonFinite> Cohort::first_bad_wire(int member) {
  if (auto bad = first_bad_parameter(member)) return bad;              // an update that went too far
  std::ranges::fill(session_.bytes("control", member), std::byte{0});  // and nothing is updated on the way
  const std::int64_t batches = config_.train.accumulate;
  for (std::int64_t part = 0; part < batches; ++part) {
    if (batches > 1) {
      const std::int64_t index = (step_ - 1) * batches + part;
      load_batch(session_, static_cast<std::uint64_t>(index));
      write_noise(session_, index);
      write_number(session_, "first", part == 0 ? 1 : 0, member);
    }
    auto bad = session_.run_checked(member);
    if (!bad) continue;
    // Finite gradients whose squares are not belong to a parameter, not to whoever adds them up.
    if (bad->wire == plan_.squares_wire)
      bad->wire = "gradient of " + plan_.parameters[static_cast<std::size_t>(bad->index)].name;
    return bad;
  }
  return std::nullopt;
}

MemberEvent Cohort::freeze(int member, Astray why) {
  MemberState& state = states_[static_cast<std::size_t>(member)];
  state.diverged_at_step = step_;
  state.diverged_because = name_of(why);
  std::string detail(name_of(why));
  if (keeps_weights(why)) {
    readable_[static_cast<std::size_t>(member)] = Readable::nothing;
    if (const auto bad = first_bad_wire(member)) {
      state.first_bad_wire = bad->wire;
      detail += fmt::format(": first in '{}', element {} is {}", bad->wire, bad->index, bad->value);
    }
  }
  state.diverged = true;  // after the search, which needs the member's batches
  session_.set_active(member, false);
  return {step_, member, "diverged", detail};
}

}  // namespace norma
