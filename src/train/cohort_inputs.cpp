// What the members of a cohort read at a step: batches, schedules, the optimiser's numbers, dropout.
#include <array>
#include <cmath>

#include "norma/train/cohort.h"

namespace norma {
namespace {

std::array<std::int32_t, 4> key_words(std::int64_t seed, std::int64_t step) {
  const auto low = [](std::int64_t x) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(x)); };
  const auto high = [](std::int64_t x) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(x) >> 32));
  };
  return {low(seed), high(seed), low(step), high(step)};
}

}  // namespace

void Cohort::write_number(Session& session, const std::string& input, double value, int member) {
  if (session.plan().slot(input).type.dtype == DType::f32) {
    session.write<float>(input, std::array{static_cast<float>(value)}, member);
  } else {
    session.write<double>(input, std::array{value}, member);
  }
}

void Cohort::write_batch(Session& session, int member) {
  const auto write = [&](const char* input, const std::vector<std::int32_t>& ids) {
    if (session.plan().has_slot(input)) session.write<std::int32_t>(input, ids, member);
  };
  write("tokens", batch_.tokens);
  write("targets", batch_.targets);
  write("source", batch_.source);
  write("source_lengths", batch_.source_lengths);
  if (session.plan().has_slot("lengths") && batch_.lengths.empty()) {
    batch_.lengths.assign(static_cast<std::size_t>(config_.model.batch), static_cast<std::int32_t>(config_.model.time));
  }
  write("lengths", batch_.lengths);
}

// Members with one data seed see the same batch; it is made once.
void Cohort::load_batch(Session& session, std::uint64_t index) {
  std::optional<std::int64_t> made;
  for (int member = 0; member < members(); ++member) {
    if (states_[static_cast<std::size_t>(member)].diverged) continue;
    const std::int64_t seed = settings_[static_cast<std::size_t>(member)].data_seed;
    if (made != seed) source_->fill(index, static_cast<std::uint64_t>(seed), batch_);
    made = seed;
    write_batch(session, member);
  }
}

void Cohort::load_evaluation_batch(Session& session, std::int64_t index) {
  source_->fill_evaluation(index, batch_);
  for (int member = 0; member < members(); ++member) write_batch(session, member);
}

void Cohort::write_schedules() {
  for (const Schedule& schedule : plan_.schedules) {
    const double value = schedule.at(static_cast<double>(step_), static_cast<double>(config_.train.steps));
    for (int member = 0; member < members(); ++member) write_number(session_, schedule.input, value, member);
  }
}

void Cohort::write_controls(bool first, bool last) {
  for (int member = 0; member < members(); ++member) {
    const TrainConfig& one = settings_[static_cast<std::size_t>(member)];
    MemberState& state = states_[static_cast<std::size_t>(member)];
    if (state.diverged) continue;
    const double factor = schedule_factor(one.schedule, step_ + 1);
    ControlBlock control = control_block(one.optimiser, one.lr * state.lr_factor, factor, step_ + 1);
    state.lr = control[OptimiserControl::lr];
    // A batch of this step that was not finite already spoils the sum.
    control[OptimiserControl::active] = last && std::isfinite(state.loss) ? 1 : 0;
    if (config_.model.dtype == DType::f32) {
      session_.write<float>("control", std::vector<float>(control.begin(), control.end()), member);
    } else {
      session_.write<double>("control", control, member);
    }
    write_number(session_, "clip", one.clip, member);
    if (config_.train.accumulate > 1) write_number(session_, "first", first ? 1 : 0, member);
  }
}

// Dropout and label smoothing of batch `index`.
void Cohort::write_noise(Session& session, std::int64_t index) {
  for (int member = 0; member < members(); ++member) {
    const TrainConfig& one = settings_[static_cast<std::size_t>(member)];
    if (config_.model.dropout) {
      write_number(session, "dropout", one.dropout, member);
      session.write<std::int32_t>("dropout_key", key_words(one.seed, index), member);
    }
    if (config_.model.smoothing && session.plan().has_slot("smoothing"))
      write_number(session, "smoothing", one.smoothing, member);
  }
}

}  // namespace norma
