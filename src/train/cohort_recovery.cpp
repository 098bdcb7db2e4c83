// What becomes of a member whose loss went astray: a second chance, or its end.
#include <algorithm>
#include <cmath>

#include "norma/train/cohort.h"

namespace norma {

void Cohort::judge(int member, const Observation& seen, std::vector<MemberEvent>& events) {
  MemberState& state = states_[static_cast<std::size_t>(member)];
  Detector& detector = detectors_[static_cast<std::size_t>(member)];
  const std::int64_t spikes = detector.spikes();
  const std::optional<Astray> why = detector.watch(state.loss, state.gradient_norm);
  state.spikes = detector.spikes();
  if (state.spikes > spikes)
    events.push_back(
        {seen.step, member, "spike", fmt::format("loss {:.4g}, rolling median {:.4g}", state.loss, detector.median())});
  if (state.loss < state.best_loss) state.best_loss = state.loss;
  if (!why) return;
  if (const auto action = recover(member, seen.step, *why)) {
    events.push_back(*action);
  } else {
    events.push_back(freeze(member, seen.step, *why));
  }
}

std::optional<MemberEvent> Cohort::recover(int member, std::int64_t step, Astray why) {
  MemberState& state = states_[static_cast<std::size_t>(member)];
  const DetectConfig& detect = config_.detect;
  if (detect.recovery == Recovery::none || state.actions >= detect.most_actions) return std::nullopt;
  if (detect.recovery == Recovery::skip && !keeps_weights(why)) return std::nullopt;
  ++state.actions;
  MemberEvent event{step, member, "", std::string(name_of(why))};
  if (keeps_weights(why)) ++state.skipped_steps;
  if (detect.recovery == Recovery::skip) {
    event.what = "skipped step";
    return event;
  }
  state.lr_factor *= detect.lr_factor;
  detectors_[static_cast<std::size_t>(member)].restart();
  // Steps taken meanwhile had the old rate, or went on from what is undone.
  for (Observation& later : pending_) later.members[static_cast<std::size_t>(member)].judged = false;
  if (detect.recovery == Recovery::lower_lr) {
    event.what = fmt::format("lowered learning rate to {:.4g} of its schedule", state.lr_factor);
    return event;
  }
  roll_back(member);
  event.what = fmt::format("rolled back to step {}, learning rate at {:.4g} of its schedule",
                           snapshots_[static_cast<std::size_t>(member)].step, state.lr_factor);
  return event;
}

void Cohort::roll_back(int member) {
  const std::span<const std::byte> bytes = snapshots_[static_cast<std::size_t>(member)].bytes;
  std::size_t at = 0;
  for (const Handle& tensor : handles_.persistent) {
    session_->stage(tensor, member, bytes.subspan(at, tensor.bytes()));
    at += tensor.bytes();
  }
}

Cohort::Snapshot Cohort::snapshot(int member) {
  Snapshot snapshot{.step = step_, .bytes = {}};
  if (first_bad_parameter(member)) return snapshot;  // the last update went too far: what there is to go back to stays
  std::size_t total = 0;
  for (const Handle& tensor : handles_.persistent) total += tensor.bytes();
  snapshot.bytes.resize(total);
  std::size_t at = 0;
  for (const Handle& tensor : handles_.persistent) {
    session_->read(tensor, member, std::span(snapshot.bytes).subspan(at, tensor.bytes()));
    at += tensor.bytes();
  }
  return snapshot;
}

std::optional<NonFinite> Cohort::first_bad_parameter(int member) {
  for (const ParameterSpec& spec : plan_.parameters) {
    const std::vector<double> values = session_->numbers(spec.name, member);
    const auto bad = std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
    if (bad != values.end())
      return NonFinite{.member = member, .wire = spec.name, .index = bad - values.begin(), .value = *bad};
  }
  return std::nullopt;
}

// The weights are those before the step, so that it can be taken again, one node at a time. Where further steps were
// taken before it was seen, they are only as near to those as these steps have left them.
std::optional<NonFinite> Cohort::first_bad_wire(int member, std::int64_t step) {
  if (auto bad = first_bad_parameter(member)) return bad;  // an update that went too far
  session_->stage_number(handles_.control, member, 0);     // and nothing is updated on the way
  const std::int64_t batches = config_.train.accumulate;
  const bool elsewhere = batches > 1 || step != step_ || staged_ahead_ >= 0;  // than at this step's batch
  staged_ahead_ = -1;
  if (step != step_) feeder_.schedules(static_cast<double>(step - 1), static_cast<double>(config_.train.steps));
  for (std::int64_t part = 0; part < batches; ++part) {
    if (elsewhere) stage_batch(feeder_, (step - 1) * batches + part);
    if (handles_.first) session_->stage_number(handles_.first, member, part == 0 ? 1 : 0);
    auto bad = session_->run_checked(member);
    if (!bad) continue;
    // Finite gradients whose squares are not belong to a parameter, not to whoever adds them up.
    if (bad->wire == plan_.squares_wire)
      bad->wire = "gradient of " + plan_.parameters[static_cast<std::size_t>(bad->index)].name;
    return bad;
  }
  return std::nullopt;
}

MemberEvent Cohort::freeze(int member, std::int64_t step, Astray why) {
  MemberState& state = states_[static_cast<std::size_t>(member)];
  state.diverged_at_step = step;
  state.diverged_because = name_of(why);
  std::string detail(name_of(why));
  if (keeps_weights(why)) {
    readable_[static_cast<std::size_t>(member)] = Readable::nothing;
    if (const auto bad = first_bad_wire(member, step)) {
      state.first_bad_wire = bad->wire;
      detail += fmt::format(": first in '{}', element {} is {}", bad->wire, bad->index, bad->value);
    }
  }
  state.diverged = true;  // after the search, which needs the member's batches
  session_->set_active(member, false);
  return {step, member, "diverged", detail};
}

}  // namespace norma
