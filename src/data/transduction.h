// Copy, reverse and sort: n random symbols, and the same again as they were, backwards or in order. The answer follows
// from the question, so the optimum is 0.
//
// For a decoder a row is the symbols, a mark and the answer, n = time / 2; only the answer is counted. Tokens: symbols,
// then the mark. For an encoder-decoder the encoder reads the symbols and the decoder says the answer as pairs.h lays
// them out, n one less than the shorter side.
#pragma once

#include "data/generated.h"
#include "data/pairs.h"

namespace norma {

enum class Answer { same, reversed, sorted };

// The form that `shape` asks for: with a source for an encoder-decoder, without for a decoder.
std::unique_ptr<Source> open_transduction(const char* name, Answer answer, const DataConfig& config,
                                          const BatchShape& shape);

// What both forms know.
struct TransductionRule {
  const char* name;
  Answer answer;
  std::int64_t symbols, length;

  void ask(Draws& draws, std::int32_t* question) const;
  void solve(const std::int32_t* question, std::int32_t* answered) const;  // they do not overlap
  std::string describe() const;
};

class Transduction final : public GeneratedRows {
 public:
  Transduction(const TransductionRule& rule, const DataConfig& config, const BatchShape& shape)
      : GeneratedRows(rule.name, shape, config.evaluation_batches), rule_(rule) {}

  std::int64_t vocabulary() const override { return rule_.symbols + 1; }
  std::optional<double> optimum() const override { return 0.0; }
  std::string describe() const override { return rule_.describe(); }

 protected:
  void write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const override;

 private:
  TransductionRule rule_;
};

class PairedTransduction final : public GeneratedSource {
 public:
  PairedTransduction(const TransductionRule& rule, const DataConfig& config, const BatchShape& shape)
      : GeneratedSource(rule.name, shape, config.evaluation_batches), rule_(rule) {}

  std::int64_t vocabulary() const override { return rule_.symbols + kPairMarks; }
  SpecialTokens special() const override { return pair_marks(rule_.symbols); }
  std::optional<double> optimum() const override { return 0.0; }
  std::string describe() const override { return rule_.describe() + ", from an encoder to a decoder"; }

 protected:
  void clear(Batch& batch) const override { clear_pairs(shape(), special(), batch); }
  void write(Draws& draws, std::int64_t row, Batch& batch) const override;

 private:
  TransductionRule rule_;
};

}  // namespace norma
