// Classification of sentences or pairs of them: "<bos> text" or "<bos> text <sep> second", cut to the row's length and
// padded; one label a row. The vocabulary is the tokenizer's, then <pad>, <bos>, <sep>.
#pragma once

#include <string_view>
#include <vector>

#include "data/records.h"
#include "data/sequences.h"
#include "data/table.h"
#include "norma/data/tokenizer.h"

namespace norma {

class Classification final : public RecordSource {
 public:
  static constexpr std::size_t kMostClasses = 1000;

  Classification(const DataConfig& config, const BatchShape& shape);

  std::int64_t vocabulary() const override { return base_ + 3; }
  std::int64_t classes() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::vector<std::string> labels() const override { return labels_; }
  SpecialTokens special() const override;
  std::string describe() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }

 protected:
  void clear(Batch& batch) const override;
  void write(Part part, std::int64_t record, std::int64_t row, Batch& batch) const override;

 private:
  struct Side {
    Sequences texts;
    std::vector<std::int32_t> labels;
  };

  void collect_labels(const std::vector<LabelledText>& records);
  void encode(const std::vector<LabelledText>& records, Side& side);

  std::string name_;
  TokenizerPointer tokenizer_;
  std::int64_t base_ = 0, cut_ = 0;
  std::vector<std::string> labels_;  // in order of their ids
  Side training_, validation_;
};

}  // namespace norma
