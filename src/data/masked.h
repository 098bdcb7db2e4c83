// Masked language modelling for encoders, on windows of any text and on generated languages.
#pragma once

#include "data/masking.h"
#include "data/windows.h"

namespace norma {

class MaskedText final : public Source {
 public:
  MaskedText(Corpus corpus, const DataConfig& config, const BatchShape& shape);

  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const override;
  std::int64_t evaluation_batches() const override { return windows_.evaluation_batches(); }
  void fill_evaluation(std::int64_t index, Batch& batch) const override;
  std::int64_t vocabulary() const override { return masking_.vocabulary(); }
  std::optional<double> optimum() const override { return std::nullopt; }
  SpecialTokens special() const override { return {.mask = masking_.mask()}; }
  std::string describe() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;
  const Tokenizer* tokenizer() const override { return windows_.tokenizer(); }

 private:
  WindowSource windows_;
  BatchShape shape_;
  Masking masking_;
};

// Rows of a generated language whose every token is a target. How uncertain the best model is about a hidden token
// depends on all others and has no closed form here, so no optimum is stated.
class MaskedLanguage final : public Source {
 public:
  // The language's tokens are 0 to words - 1; a start mark behind them is not read.
  MaskedLanguage(const std::string& name, std::unique_ptr<Source> language, std::int64_t words,
                 const DataConfig& config, const BatchShape& shape);

  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const override;
  std::int64_t evaluation_batches() const override { return language_->evaluation_batches(); }
  void fill_evaluation(std::int64_t index, Batch& batch) const override;
  std::int64_t vocabulary() const override { return masking_.vocabulary(); }
  std::optional<double> optimum() const override { return std::nullopt; }
  SpecialTokens special() const override { return {.mask = masking_.mask()}; }
  std::string describe() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;

 private:
  void ask(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, Batch& batch) const;

  std::string name_;
  std::unique_ptr<Source> language_;
  BatchShape shape_;
  Masking masking_;
  std::uint64_t training_stream_, evaluation_stream_;
};

}  // namespace norma
