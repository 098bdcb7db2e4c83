// Sentences of a small probabilistic language whose entropy is known exactly.
//
//   sentence = clause expression value "."
//   clause_k = adjective* noun ["that" clause_{k+1}] verb        the verb agrees with its noun: noun noun verb verb
//   expression_k = operator operand operand [operand [operand]] ")"     operand = digit | expression_{k+1}
//   value = the digit that the expression evaluates to (max, min, or sum modulo 6)
//
// Every prefix determines the state of the generator, so the conditional entropy of a token is the entropy of one
// choice; agreement, closing order and values cost nothing to a model that computes them. Each row starts with a new
// sentence, so the window hides nothing.
#pragma once

#include <cstdint>
#include <span>

#include "data/generated.h"

namespace norma {

namespace sentences {

inline constexpr int kClasses = 4, kWords = 4, kAdjectives = 4, kOperators = 3, kDigits = 6;
inline constexpr int kFewestOperands = 2, kMostOperands = 4;
inline constexpr std::int32_t kStop = 0, kAdjective = 1, kNoun = kAdjective + kAdjectives,
                              kVerb = kNoun + kClasses * kWords, kThat = kVerb + kClasses * kWords,
                              kOperator = kThat + 1, kClose = kOperator + kOperators, kDigit = kClose + 1,
                              kVocabulary = kDigit + kDigits;
inline constexpr double kAdjectiveChance = 0.25, kThatChance = 0.4, kNestChance = 0.3, kCloseChance = 0.5;
// Words of a class by rank: 1, 1/2, 1/3, 1/4, normalised. A verb's rank is counted from its noun's place, so the
// choice of verb depends on the noun, not only on its class.
inline constexpr double kRankChance[kWords] = {12.0 / 25, 6.0 / 25, 4.0 / 25, 3.0 / 25};

// Mean entropy in nats of the first `time` tokens after a full stop, nesting at most `depth` deep.
double mean_entropy(std::int64_t depth, std::int64_t time);
// Its limit: the entropy of one sentence over its expected length.
double entropy_rate(std::int64_t depth);

}  // namespace sentences

class Sentences final : public GeneratedRows {
 public:
  static constexpr std::int64_t kDeepest = 6;

  Sentences(const DataConfig& config, const BatchShape& shape);

  std::int64_t vocabulary() const override { return sentences::kVocabulary; }
  std::optional<double> optimum() const override { return optimum_; }
  std::string describe() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;

 protected:
  void write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const override;

 private:
  std::int64_t depth_;
  double optimum_;
};

}  // namespace norma
