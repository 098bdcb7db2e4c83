// Language modelling on a run of tokens: windows of `time` tokens and the tokens that follow them.
#pragma once

#include <string>

#include "data/corpus.h"
#include "norma/data/source.h"

namespace norma {

enum class WindowOrder {
  permuted,  // windows side by side, each once an epoch, in an order keyed by seed and epoch
  random,    // every offset equally likely, independently
};

// The windows of one run of tokens, without the batches.
class Windows {
 public:
  Windows(TokenView tokens, std::int64_t time, const std::string& name);

  std::int64_t count() const { return (tokens_.size() - 1) / time_; }
  // Offset of sample number `sample` under `seed`.
  std::int64_t offset(WindowOrder order, std::uint64_t sample, std::uint64_t seed) const;
  // Offset of window `i` of `of` that are spread evenly over the run.
  std::int64_t spread(std::int64_t i, std::int64_t of) const { return i * count() / of * time_; }
  const TokenView& tokens() const { return tokens_; }

 private:
  TokenView tokens_;
  std::int64_t time_;
};

class WindowSource final : public Source {
 public:
  WindowSource(Corpus corpus, const DataConfig& config, const BatchShape& shape);

  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const override;
  std::int64_t evaluation_batches() const override { return evaluation_batches_; }
  void fill_evaluation(std::int64_t index, Batch& batch) const override;
  std::int64_t vocabulary() const override { return corpus_.vocabulary; }
  std::int64_t held_out_records() const override { return validation_.count(); }
  std::optional<double> optimum() const override { return std::nullopt; }
  std::string describe() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;
  const Tokenizer* tokenizer() const override { return corpus_.tokenizer.get(); }

 private:
  Corpus corpus_;
  BatchShape shape_;
  WindowOrder order_;
  Windows training_, validation_;
  std::int64_t evaluation_batches_;
};

WindowOrder parse_order(const std::string& name);

}  // namespace norma
