#include "norma/train/feeder.h"

#include <algorithm>
#include <array>
#include <optional>

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

Feeder::Feeder(Session& session, const ModelConfig& model, std::vector<Schedule> schedules)
    : session_(session),
      whole_(static_cast<std::size_t>(model.batch), static_cast<std::int32_t>(model.time)),
      lengths_(session.find("lengths")),
      dropout_(session.find("dropout")),
      dropout_key_(session.find("dropout_key")),
      smoothing_(session.find("smoothing")),
      schedules_(std::move(schedules)) {
  const auto add = [&](const char* input, std::vector<std::int32_t> Batch::*ids) {
    if (Handle found = session.find(input)) ids_.push_back({std::move(found), ids});
  };
  add("tokens", &Batch::tokens);
  add("targets", &Batch::targets);
  add("source", &Batch::source);
  add("source_lengths", &Batch::source_lengths);
  for (const Schedule& schedule : schedules_) schedule_inputs_.push_back(session.find(schedule.input));
}

void Feeder::batch(const Source& source, std::uint64_t index, std::span<const std::uint64_t> seeds) {
  std::optional<std::uint64_t> made;
  for (int member = 0; member < session_.members(); ++member) {
    if (!session_.active(member)) continue;
    const std::uint64_t seed = seeds[static_cast<std::size_t>(member)];
    if (made != seed) source.fill(index, seed, batch_);
    made = seed;
    write(batch_, member);
  }
}

void Feeder::evaluation_batch(const Source& source, std::int64_t index) {
  source.fill_evaluation(index, batch_);
  for (int member = 0; member < session_.members(); ++member) {
    if (session_.active(member)) write(batch_, member);
  }
}

void Feeder::write(const Batch& batch, int member) {
  for (const Ids& one : ids_) session_.write<std::int32_t>(one.input, batch.*one.ids, member);
  if (lengths_) session_.write<std::int32_t>(lengths_, batch.lengths.empty() ? whole_ : batch.lengths, member);
}

double Feeder::counted_targets() const {
  return static_cast<double>(
      std::count_if(batch_.targets.begin(), batch_.targets.end(), [](std::int32_t id) { return id != kIgnored; }));
}

void Feeder::schedules(double step, double steps) {
  for (std::size_t i = 0; i < schedules_.size(); ++i) {
    if (!schedule_inputs_[i]) continue;
    const double value = schedules_[i].at(step, steps);
    for (int member = 0; member < session_.members(); ++member)
      session_.stage_number(schedule_inputs_[i], member, value);
  }
}

void Feeder::dropout(int member, double rate, std::int64_t seed, std::int64_t index) {
  if (dropout_) session_.stage_number(dropout_, member, rate);
  if (dropout_key_) session_.write<std::int32_t>(dropout_key_, key_words(seed, index), member);
}

void Feeder::smoothing(int member, double share) {
  if (smoothing_) session_.stage_number(smoothing_, member, share);
}

}  // namespace norma
