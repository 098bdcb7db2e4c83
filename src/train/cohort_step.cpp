// A step of a cohort, and the look at it that comes a fixed number of steps later.
#include <algorithm>
#include <cmath>
#include <utility>

#include "norma/train/cohort.h"

namespace norma {

std::vector<MemberEvent> Cohort::train_step(Watching watching, Look look) {
  advance(watching);
  return look_back(look == Look::at_all || step_ == config_.train.steps ? 0 : lag_);
}

std::vector<MemberEvent> Cohort::look_back(int most_unseen) {
  const auto unseen = static_cast<std::size_t>(most_unseen);
  std::vector<MemberEvent> events;
  while (pending_.size() > unseen) {
    std::vector<MemberEvent> more = observe();
    std::move(more.begin(), more.end(), std::back_inserter(events));
  }
  return events;
}

void Cohort::advance(Watching watching) {
  // The weights of a step that nobody has judged are about to change.
  if (!pending_.empty() && takes_snapshot(pending_.back().step)) {
    for (int member = 0; member < members(); ++member) {
      Observation::Member& one = pending_.back().members[static_cast<std::size_t>(member)];
      if (one.taken && !states_[static_cast<std::size_t>(member)].diverged) one.snapshot = snapshot(member);
    }
  }
  for (std::size_t member = 0; member < states_.size(); ++member) {
    if (!states_[member].diverged && detectors_[member].in_doubt()) watching = Watching::yes;
  }
  Observation now{.step = step_ + 1, .watching = watching, .members = {}};
  for (const MemberState& state : states_) now.members.push_back({.taken = !state.diverged});
  const std::int64_t batches = config_.train.accumulate;
  feeder_.schedules(static_cast<double>(step_), static_cast<double>(config_.train.steps));
  for (std::int64_t part = 0; part < batches; ++part) {
    const std::int64_t index = step_ * batches + part;
    if (staged_ahead_ != index) stage_batch(feeder_, index);
    staged_ahead_ = -1;
    stage_controls(now, part == 0, part + 1 == batches);
    session_->run(part + 1 == batches ? watching : Watching::no);
    if (session_->runs_ahead()) {
      stage_batch(feeder_, index + 1);
      staged_ahead_ = index + 1;
    }
    if (reads_later_) continue;
    for (int member = 0; member < members(); ++member) {
      Observation::Member& one = now.members[static_cast<std::size_t>(member)];
      if (one.taken) one.loss += session_->number(handles_.loss, member) / static_cast<double>(batches);
    }
  }
  for (int member = 0; member < members(); ++member) {
    Observation::Member& one = now.members[static_cast<std::size_t>(member)];
    if (!one.taken) continue;
    if (!reads_later_) one.gradient_norm = session_->number(handles_.gradient_norm, member);
    readable_[static_cast<std::size_t>(member)] = Readable::nothing;
  }
  ++step_;
  pending_.push_back(std::move(now));
}

std::vector<MemberEvent> Cohort::observe() {
  std::vector<MemberEvent> events;
  if (pending_.empty()) return events;
  Observation seen = std::move(pending_.front());
  pending_.pop_front();
  const bool newest = pending_.empty();  // the session still holds what this step left
  for (int member = 0; member < members(); ++member) {
    const auto index = static_cast<std::size_t>(member);
    MemberState& state = states_[index];
    Observation::Member& one = seen.members[index];
    if (!one.taken || state.diverged) continue;
    if (reads_later_) {
      const int runs_ago = static_cast<int>(pending_.size());
      one.loss = session_->earlier_number(handles_.loss, member, runs_ago);
      one.gradient_norm = session_->earlier_number(handles_.gradient_norm, member, runs_ago);
    }
    state.loss = one.loss;
    state.gradient_norm = one.gradient_norm;
    state.lr = one.lr;
    if (!one.judged) continue;
    if (newest) readable_[index] = seen.watching == Watching::yes ? Readable::everything : Readable::layers;
    const std::int64_t actions = state.actions;
    judge(member, seen, events);
    const bool sound = !state.diverged && std::isfinite(state.loss) && std::isfinite(state.gradient_norm);
    if (!takes_snapshot(seen.step) || !sound) continue;
    if (newest) one.snapshot = snapshot(member);
    const bool undone = !newest && state.actions != actions;  // what was kept is what recovery has just left
    if (!undone && !one.snapshot.bytes.empty()) snapshots_[index] = std::move(one.snapshot);
  }
  return events;
}

void Cohort::stage_batch(Feeder& feeder, std::int64_t index) {
  feeder.batch(*source_, static_cast<std::uint64_t>(index), data_seeds_);
  for (int member = 0; member < members(); ++member) {
    const TrainConfig& one = settings_[static_cast<std::size_t>(member)];
    feeder.dropout(member, one.dropout, one.seed, index);
    feeder.smoothing(member, one.smoothing);
  }
}

void Cohort::stage_controls(Observation& step, bool first, bool last) {
  for (int member = 0; member < members(); ++member) {
    const TrainConfig& one = settings_[static_cast<std::size_t>(member)];
    Observation::Member& seen = step.members[static_cast<std::size_t>(member)];
    if (!seen.taken) continue;
    const double factor = schedule_factor(one.schedule, step.step);
    const double lr = one.lr * states_[static_cast<std::size_t>(member)].lr_factor;
    ControlBlock control = control_block(one.optimiser, lr, factor, step.step);
    seen.lr = control[OptimiserControl::lr];
    // A batch of this step that was not finite already spoils the sum.
    control[OptimiserControl::active] = last && std::isfinite(seen.loss) ? 1 : 0;
    session_->stage_numbers(handles_.control, member, control);
    session_->stage_number(handles_.clip, member, one.clip);
    if (handles_.first) session_->stage_number(handles_.first, member, first ? 1 : 0);
    if (handles_.ema_take) {
      const double take = control[OptimiserControl::active] * ema_share(config_.train.ema, step.step);
      session_->stage_number(handles_.ema_take, member, take);
    }
  }
}

bool Cohort::takes_snapshot(std::int64_t step) const {
  return config_.detect.recovery == Recovery::roll_back && step % config_.detect.snapshot_every == 0;
}

}  // namespace norma
