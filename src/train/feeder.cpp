#include "norma/train/feeder.h"

#include <algorithm>
#include <array>
#include <optional>

#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

std::array<std::int32_t, 4> key_words(std::int64_t seed, std::int64_t step) {
  const auto low = [](std::int64_t x) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(x)); };
  const auto high = [](std::int64_t x) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(x) >> 32));
  };
  return {low(seed), high(seed), low(step), high(step)};
}

// Null: lengths of rows that are whole.
const BatchTensor* tensor_for(const InputSpec& input, const Batch& batch, const std::string& family) {
  const BatchTensor* tensor = batch.find(input.name);
  if (tensor == nullptr) {
    if (input.content == InputSpec::Content::lengths) return nullptr;
    std::vector<std::string> names;
    for (const BatchTensor& one : batch.tensors()) names.push_back(one.name);
    fail("the data has no '{}', which a model of the family {} reads{}; it has {}", input.name, family,
         did_you_mean(input.name, names), names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")));
  }
  const bool ids = input.content != InputSpec::Content::numbers;
  if (tensor->shape != input.shape() || tensor->holds_ids() != ids)
    fail("'{}' of the data is {}{}; a model of the family {} reads {}{}", input.name,
         tensor->holds_ids() ? "ids" : "numbers", tensor->shape.str(), family, ids ? "ids" : "numbers",
         input.shape().str());
  return tensor;
}

}  // namespace

Feeder::Feeder(Session& session, const ModelConfig& model, std::vector<Schedule> schedules)
    : session_(session),
      family_(model.family->name),
      dropout_(session.find("dropout")),
      dropout_key_(session.find("dropout_key")),
      smoothing_(session.find("smoothing")),
      mixed_targets_(session.find("mixed_targets")),
      mixture_(session.find("mixture")),
      schedules_(std::move(schedules)) {
  for (const InputSpec& spec : model.family->inputs(model)) {
    Handle found = session.find(spec.name);
    if (!found) continue;
    Input input{.spec = spec, .handle = std::move(found)};
    if (spec.content == InputSpec::Content::lengths)
      input.whole.assign(static_cast<std::size_t>(spec.shape().elements()), static_cast<std::int32_t>(spec.below));
    specs_.push_back(spec);
    inputs_.push_back(std::move(input));
  }
  for (const Schedule& schedule : schedules_) schedule_inputs_.push_back(session.find(schedule.input));
}

void Feeder::batch(const Source& source, std::uint64_t index, std::span<const std::uint64_t> seeds) {
  std::optional<std::uint64_t> made;
  for (int member = 0; member < session_.members(); ++member) {
    if (!session_.active(member)) continue;
    const std::uint64_t seed = seeds[static_cast<std::size_t>(member)];
    if (made != seed) {
      source.fill(index, seed, batch_);
      require_targets(batch_, specs_, index);
    }
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
  for (const Input& input : inputs_) {
    const BatchTensor* tensor = tensor_for(input.spec, batch, family_);
    if (tensor == nullptr) {
      session_.write<std::int32_t>(input.handle, input.whole, member);
      continue;
    }
    if (tensor->content != 0 && session_.has_content(input.handle, member, tensor->content)) continue;
    if (tensor->holds_ids()) {
      session_.write<std::int32_t>(input.handle, std::get<Batch::Ids>(tensor->values), member);
    } else if (input.handle.type().dtype == DType::f32) {
      session_.write<float>(input.handle, std::get<Batch::Numbers>(tensor->values), member);
    } else {
      const Batch::Numbers& numbers = std::get<Batch::Numbers>(tensor->values);
      session_.stage_numbers(input.handle, member, std::vector<double>(numbers.begin(), numbers.end()));
    }
    if (tensor->content != 0) session_.mark_content(input.handle, member, tensor->content);
  }
  if (mixture_) write_mixture(batch, member);
}

// A batch that mixes nothing has its own targets a second time, with no share.
void Feeder::write_mixture(const Batch& batch, int member) {
  const bool mixed = batch.has("mixture");
  session_.write<std::int32_t>(mixed_targets_, batch.ids(mixed ? "mixed_targets" : "targets"), member);
  session_.stage_number(mixture_, member, mixed ? static_cast<double>(batch.numbers("mixture")[0]) : 0.0);
}

void check_batch(const Batch& batch, const ModelConfig& model) {
  for (const InputSpec& input : model.family->inputs(model)) tensor_for(input, batch, model.family->name);
}

double Feeder::counted() const { return counted_targets(specs_, batch_); }

void require_targets(const Batch& batch, const std::vector<InputSpec>& inputs, std::uint64_t index) {
  const auto asked = std::ranges::find(inputs, InputSpec::Content::targets, &InputSpec::content);
  if (asked == inputs.end()) return;
  const Batch::Ids& ids = batch.ids(asked->name);
  if (std::ranges::all_of(ids, [](std::int32_t id) { return id == kIgnored; }))
    fail("batch {} of the data holds nothing to learn: all {} of its targets are {}, which is not counted", index,
         ids.size(), kIgnored);
}

double counted_targets(const std::vector<InputSpec>& inputs, const Batch& batch) {
  double counted = 0;
  bool asked = false;
  for (const InputSpec& input : inputs) {
    if (input.content != InputSpec::Content::targets) continue;
    asked = true;
    const Batch::Ids& ids = batch.ids(input.name);
    counted += static_cast<double>(std::ranges::count_if(ids, [](std::int32_t id) { return id != kIgnored; }));
  }
  return asked ? counted : static_cast<double>(inputs.front().sizes.front().value);
}

void add_whole_lengths(const std::vector<InputSpec>& inputs, Batch& batch) {
  for (const InputSpec& input : inputs) {
    if (input.content != InputSpec::Content::lengths || batch.has(input.name)) continue;
    std::ranges::fill(batch.ids(input.name, input.shape()), static_cast<std::int32_t>(input.below));
  }
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
