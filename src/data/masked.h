// Masked language modelling (Devlin et al. 2019) on any text: in each window a fixed number of tokens,
// data.mask_fraction of them, are to be predicted; 80 % of these are replaced by <mask>, 10 % by a random token, 10 %
// stay. The vocabulary is the corpus's, then <mask>.
#pragma once

#include "data/draws.h"
#include "data/windows.h"

namespace norma {

class Masked final : public Source {
 public:
  Masked(Corpus corpus, const DataConfig& config, const BatchShape& shape);

  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const override;
  std::int64_t evaluation_batches() const override { return windows_.evaluation_batches(); }
  void fill_evaluation(std::int64_t index, Batch& batch) const override;
  std::int64_t vocabulary() const override { return windows_.vocabulary() + 1; }
  std::optional<double> optimum() const override { return std::nullopt; }
  SpecialTokens special() const override;
  std::string describe() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;
  const Tokenizer* tokenizer() const override { return windows_.tokenizer(); }

 private:
  void mask_row(Draws draws, std::int32_t* tokens, std::int32_t* targets) const;

  WindowSource windows_;
  BatchShape shape_;
  std::int64_t masked_;  // tokens of each row
};

}  // namespace norma
