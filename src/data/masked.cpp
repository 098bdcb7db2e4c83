#include "data/masked.h"

#include <algorithm>

#include "norma/core/error.h"

namespace norma {

MaskedSource::MaskedSource(const std::string& name, std::unique_ptr<Source> language, std::int64_t words,
                           const DataConfig& config, const BatchShape& shape)
    : language_(std::move(language)),
      shape_(shape),
      masking_(config, shape.time, words),
      training_stream_(hash_name("data." + name)),
      evaluation_stream_(hash_name("data." + name + ".evaluation")) {}

void MaskedSource::hide(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, Batch& batch) const {
  restore_text(batch);
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    std::int32_t* const targets = batch.ids("targets").data() + row * shape_.time;
    if (targets[0] == kIgnored) break;  // held-out text ends before this row
    masking_.ask(Draws(seed, stream, index, static_cast<std::uint32_t>(row)),
                 batch.ids("tokens").data() + row * shape_.time, targets);
  }
}

void MaskedSource::fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  language_->fill(index, seed, batch);
  hide(seed, training_stream_, index, batch);
}

void MaskedSource::fill_evaluation(std::int64_t index, Batch& batch) const {
  language_->fill_evaluation(index, batch);
  hide(0, evaluation_stream_, static_cast<std::uint64_t>(index), batch);
}

MaskedText::MaskedText(std::unique_ptr<Source> windows, std::int64_t words, const DataConfig& config,
                       const BatchShape& shape)
    : MaskedSource("masked", std::move(windows), words, config, shape) {}

std::string MaskedText::describe() const { return fmt::format("{}; {}", language().describe(), masking().describe()); }

std::string MaskedText::decode(std::span<const std::int32_t> tokens) const {
  return masking().decode(tokens, language(), "");
}

MaskedLanguage::MaskedLanguage(const std::string& name, std::unique_ptr<Source> language, std::int64_t words,
                               const DataConfig& config, const BatchShape& shape)
    : MaskedSource(name, std::move(language), words, config, shape), name_(name) {}

// What a decoder would say is the text.
void MaskedLanguage::restore_text(Batch& batch) const {
  std::ranges::copy(batch.ids("targets"), batch.ids("tokens").begin());
}

// Without the numbers of the language itself, which are those of reading it from left to right.
std::string MaskedLanguage::describe() const {
  const std::string whole = language().describe();
  return fmt::format("{}: {}; {}", name_, whole.substr(0, whole.find(';')), masking().describe());
}

std::string MaskedLanguage::decode(std::span<const std::int32_t> tokens) const {
  return masking().decode(tokens, language(), " ");
}

}  // namespace norma
