// What becomes of a member whose loss went astray: a second chance, or its end.
#include <algorithm>

#include "norma/train/cohort.h"

namespace norma {

void Cohort::judge(int member, double loss, std::vector<MemberEvent>& events) {
  MemberState& state = states_[static_cast<std::size_t>(member)];
  Detector& detector = detectors_[static_cast<std::size_t>(member)];
  const std::int64_t spikes = detector.spikes();
  const std::optional<Astray> why = detector.watch(loss);
  state.spikes = detector.spikes();
  if (state.spikes > spikes)
    events.push_back(
        {step_, member, "spike", fmt::format("loss {:.4g}, rolling median {:.4g}", loss, detector.median())});
  if (const double median = detector.median(); median < state.best_loss) state.best_loss = median;
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
  if (detect.recovery == Recovery::skip && why != Astray::not_finite) return std::nullopt;
  ++state.actions;
  MemberEvent event{step_, member, "", std::string(name_of(why))};
  if (why == Astray::not_finite) ++state.skipped_steps;  // the plan itself kept the weights
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
  Snapshot& snapshot = snapshots_[static_cast<std::size_t>(member)];
  snapshot.step = step_;
  snapshot.bytes.clear();
  for (const std::string& name : persistent_) {
    const std::span<std::byte> bytes = session_.bytes(name, member);
    snapshot.bytes.insert(snapshot.bytes.end(), bytes.begin(), bytes.end());
  }
}

MemberEvent Cohort::freeze(int member, Astray why) {
  MemberState& state = states_[static_cast<std::size_t>(member)];
  state.diverged = true;
  state.diverged_at_step = step_;
  state.diverged_because = name_of(why);
  std::string detail(name_of(why));
  if (why == Astray::not_finite) {
    // The weights are those before this step, so the step can be taken again, one node at a time.
    readable_[static_cast<std::size_t>(member)] = Readable::nothing;
    if (const auto bad = session_.run_checked(member)) {
      state.first_bad_wire = bad->wire;
      detail += fmt::format(": first in '{}', element {} is {}", bad->wire, bad->index, bad->value);
    }
  }
  session_.set_active(member, false);
  return {step_, member, "diverged", detail};
}

}  // namespace norma
