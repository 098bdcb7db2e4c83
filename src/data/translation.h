// Translation: pairs of sentences for an encoder-decoder, as pairs.h lays them out; both languages share one tokenizer.
#pragma once

#include <memory>
#include <string_view>

#include "data/pairs.h"
#include "data/records.h"
#include "data/sequences.h"
#include "norma/data/tokenizer.h"

namespace norma {

class Translation final : public RecordSource {
 public:
  Translation(const DataConfig& config, const BatchShape& shape);

  std::int64_t vocabulary() const override { return base_ + kPairMarks; }
  SpecialTokens special() const override { return pair_marks(base_); }
  std::string describe() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  std::string reference(std::int64_t index, std::int64_t row) const override;

 protected:
  void clear(Batch& batch) const override { clear_pairs(shape(), special(), batch); }
  void write(Part part, std::int64_t record, std::int64_t row, Batch& batch) const override;

 private:
  struct Side {
    Sequences sources, targets;
    std::vector<std::string> texts;  // of the targets
  };

  TokenizerPointer tokenizer_;
  std::int64_t base_ = 0, dropped_ = 0;
  std::int64_t time_to_keep_ = 0;  // of most pairs, where many are dropped; 0: few are
  Side training_, validation_;
  std::string name_;
};

}  // namespace norma
