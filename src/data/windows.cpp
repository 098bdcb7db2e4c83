#include "data/windows.h"

#include <algorithm>

#include "data/permutation.h"
#include "norma/core/error.h"
#include "norma/core/random.h"

namespace norma {

Windows::Windows(TokenView tokens, std::int64_t time, const std::string& name)
    : tokens_(std::move(tokens)), time_(time) {
  if (count() < 1) {
    fail("{} has {} tokens; one window of {} needs {}", name, tokens_.size(), time, time + 1);
  }
}

std::int64_t Windows::offset(WindowOrder order, std::uint64_t sample, std::uint64_t seed) const {
  if (order == WindowOrder::random) {
    const RandomStream stream(seed, "data.offsets");
    return static_cast<std::int64_t>(stream.below(sample, static_cast<std::uint64_t>(tokens_.size() - time_)));
  }
  const auto windows = static_cast<std::uint64_t>(count());
  const Permutation permutation(windows, seed, sample / windows);
  return static_cast<std::int64_t>(permutation(sample % windows)) * time_;
}

WindowOrder parse_order(const std::string& name) {
  if (name == "permuted") return WindowOrder::permuted;
  if (name == "random") return WindowOrder::random;
  const std::string known[] = {"permuted", "random"};
  fail("data.order is '{}'; expected permuted or random{}", name, did_you_mean(name, known));
}

WindowSource::WindowSource(Corpus corpus, const DataConfig& config, const BatchShape& shape)
    : corpus_(std::move(corpus)),
      shape_(shape),
      order_(parse_order(config.order)),
      training_(corpus_.training, shape.time, corpus_.name + " (training part)"),
      validation_(corpus_.validation, shape.time, corpus_.name + " (validation part)") {
  const std::int64_t all = (validation_.count() + shape.batch - 1) / shape.batch;
  evaluation_batches_ = config.evaluation_batches == 0 ? all : std::min(all, config.evaluation_batches);
}

void WindowSource::fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  const std::int64_t time = shape_.time;
  Batch::Ids& tokens = batch.ids("tokens", {shape_.batch, time});
  Batch::Ids& targets = batch.ids("targets", {shape_.batch, time});
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    const std::uint64_t sample = index * static_cast<std::uint64_t>(shape_.batch) + static_cast<std::uint64_t>(row);
    const std::int64_t offset = training_.offset(order_, sample, seed);
    training_.tokens().copy(offset, time, tokens.data() + row * time);
    training_.tokens().copy(offset + 1, time, targets.data() + row * time);
  }
}

void WindowSource::fill_evaluation(std::int64_t index, Batch& batch) const {
  NORMA_ASSERT(index >= 0 && index < evaluation_batches_);
  const std::int64_t time = shape_.time;
  const std::int64_t windows = std::min(validation_.count(), evaluation_batches_ * shape_.batch);
  Batch::Ids& tokens = batch.ids("tokens", {shape_.batch, time});
  Batch::Ids& targets = batch.ids("targets", {shape_.batch, time});
  std::ranges::fill(tokens, 0);
  std::ranges::fill(targets, kIgnored);
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    const std::int64_t window = index * shape_.batch + row;
    if (window >= windows) break;
    const std::int64_t offset = validation_.spread(window, windows);
    validation_.tokens().copy(offset, time, tokens.data() + row * time);
    validation_.tokens().copy(offset + 1, time, targets.data() + row * time);
  }
}

std::string WindowSource::describe() const {
  return fmt::format("{}: {} training and {} validation tokens, vocabulary {}", corpus_.name, training_.tokens().size(),
                     validation_.tokens().size(), corpus_.vocabulary);
}

std::string WindowSource::decode(std::span<const std::int32_t> tokens) const {
  return corpus_.tokenizer ? corpus_.tokenizer->decode(tokens) : Source::decode(tokens);
}

}  // namespace norma
