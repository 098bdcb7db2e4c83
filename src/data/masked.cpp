#include "data/masked.h"

#include <algorithm>

#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::uint64_t kTrainingStream = hash_name("data.masked");
constexpr std::uint64_t kEvaluationStream = hash_name("data.masked.evaluation");

}  // namespace

MaskedText::MaskedText(Corpus corpus, const DataConfig& config, const BatchShape& shape)
    : windows_(std::move(corpus), config, shape), shape_(shape), masking_(config, shape.time, windows_.vocabulary()) {}

void MaskedText::fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  windows_.fill(index, seed, batch);
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    masking_.ask(Draws(seed, kTrainingStream, index, static_cast<std::uint32_t>(row)),
                 batch.tokens.data() + row * shape_.time, batch.targets.data() + row * shape_.time);
  }
}

void MaskedText::fill_evaluation(std::int64_t index, Batch& batch) const {
  windows_.fill_evaluation(index, batch);
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    std::int32_t* const targets = batch.targets.data() + row * shape_.time;
    if (targets[0] == kIgnored) break;  // no window here, nor in later rows
    masking_.ask(Draws(0, kEvaluationStream, static_cast<std::uint64_t>(index), static_cast<std::uint32_t>(row)),
                 batch.tokens.data() + row * shape_.time, targets);
  }
}

std::string MaskedText::describe() const { return fmt::format("{}; {}", windows_.describe(), masking_.describe()); }

std::string MaskedText::decode(std::span<const std::int32_t> tokens) const {
  return masking_.decode(tokens, windows_, "");
}

MaskedLanguage::MaskedLanguage(const std::string& name, std::unique_ptr<Source> language, std::int64_t words,
                               const DataConfig& config, const BatchShape& shape)
    : name_(name),
      language_(std::move(language)),
      shape_(shape),
      masking_(config, shape.time, words),
      training_stream_(hash_name("data." + name)),
      evaluation_stream_(hash_name("data." + name + ".evaluation")) {}

void MaskedLanguage::ask(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, Batch& batch) const {
  std::copy(batch.targets.begin(), batch.targets.end(), batch.tokens.begin());  // what a decoder would say is the text
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    masking_.ask(Draws(seed, stream, index, static_cast<std::uint32_t>(row)), batch.tokens.data() + row * shape_.time,
                 batch.targets.data() + row * shape_.time);
  }
}

void MaskedLanguage::fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  language_->fill(index, seed, batch);
  ask(seed, training_stream_, index, batch);
}

void MaskedLanguage::fill_evaluation(std::int64_t index, Batch& batch) const {
  language_->fill_evaluation(index, batch);
  ask(0, evaluation_stream_, static_cast<std::uint64_t>(index), batch);
}

// Without the numbers of the language itself, which are those of reading it from left to right.
std::string MaskedLanguage::describe() const {
  const std::string whole = language_->describe();
  return fmt::format("{}: {}; {}", name_, whole.substr(0, whole.find(';')), masking_.describe());
}

std::string MaskedLanguage::decode(std::span<const std::int32_t> tokens) const {
  return masking_.decode(tokens, *language_, " ");
}

}  // namespace norma
