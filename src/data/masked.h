// Masked language modelling for encoders, on windows of any text and on generated languages.
#pragma once

#include <memory>

#include "data/masking.h"

namespace norma {

// Rows of a language with some of their tokens hidden. How uncertain the best model is about a hidden token depends on
// all others and has no closed form here, so no optimum is stated.
class MaskedSource : public Source {
 public:
  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const final;
  std::int64_t evaluation_batches() const final { return language_->evaluation_batches(); }
  void fill_evaluation(std::int64_t index, Batch& batch) const final;
  std::int64_t vocabulary() const final { return masking_.vocabulary(); }
  std::optional<double> optimum() const final { return std::nullopt; }
  SpecialTokens special() const final { return {.mask = masking_.mask()}; }
  const Tokenizer* tokenizer() const final { return language_->tokenizer(); }

 protected:
  // The language's tokens are 0 to words - 1; a start mark behind them is not read.
  MaskedSource(const std::string& name, std::unique_ptr<Source> language, std::int64_t words, const DataConfig& config,
               const BatchShape& shape);

  const Source& language() const { return *language_; }
  const Masking& masking() const { return masking_; }

 private:
  // Makes the tokens of a batch those that are to be found.
  virtual void restore_text(Batch& batch) const = 0;
  void hide(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, Batch& batch) const;

  std::unique_ptr<Source> language_;
  BatchShape shape_;
  Masking masking_;
  std::uint64_t training_stream_, evaluation_stream_;
};

class MaskedText final : public MaskedSource {
 public:
  MaskedText(std::unique_ptr<Source> windows, std::int64_t words, const DataConfig& config, const BatchShape& shape);
  std::string describe() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;

 private:
  void restore_text(Batch&) const override {}
};

// A generated language whose every token is a target.
class MaskedLanguage final : public MaskedSource {
 public:
  MaskedLanguage(const std::string& name, std::unique_ptr<Source> language, std::int64_t words,
                 const DataConfig& config, const BatchShape& shape);
  std::string describe() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;

 private:
  void restore_text(Batch& batch) const override;

  std::string name_;
};

}  // namespace norma
