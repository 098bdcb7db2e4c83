// Associative recall: a row is n pairs "key value" with distinct keys, then the keys again in another order, each
// followed by its value. Only these values are counted; they follow from the pairs, so the optimum is 0, and ln symbols
// without looking. Tokens: keys, then values, then a filler for odd rows.
#pragma once

#include "data/generated.h"

namespace norma {

class Recall final : public GeneratedRows {
 public:
  static constexpr std::int64_t kMostSymbols = 4096, kUsualSymbols = 32;

  Recall(const DataConfig& config, const BatchShape& shape);

  std::int64_t vocabulary() const override { return 2 * symbols_ + 1; }
  std::optional<double> optimum() const override { return 0.0; }
  std::string describe() const override;

 protected:
  void write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const override;

 private:
  std::int64_t symbols_, pairs_;
};

}  // namespace norma
