// The default task: strings of a random context-free grammar in levels, with a known entropy.
//
// A symbol of one level is rewritten as a pair of symbols of the next, by one of `choices` rules with equal chance;
// after `depth` levels stand 2^depth tokens. No pair belongs to two symbols, and every symbol is as often the left and
// the right half of a pair as any other. So every string has one derivation, each derivation is as likely as any, and
// every symbol is uniform: a string of 2^k tokens has ln(symbols) + (2^k - 1) ln(choices) nats. This is the random
// hierarchy model (Cagnetta et al. 2024) with balanced rules.
//
// A row is a start mark, then whole strings; what is left of the row is filled by strings of fewer levels, so that the
// sum above holds for every row length. The rules are the same for every seed.
#pragma once

#include <cstdint>
#include <vector>

#include "data/generated.h"

namespace norma {

class Grammar final : public GeneratedRows {
 public:
  static constexpr std::int64_t kMostSymbols = 64, kDeepest = 10;

  Grammar(const DataConfig& config, const BatchShape& shape);

  std::int64_t vocabulary() const override { return symbols_ + 1; }
  std::optional<double> optimum() const override;
  std::string describe() const override;

  // Nats per token for a model that understands the lowest `levels` levels: the plateaus of learning, from
  // ln(symbols) at 0 down to the long-run optimum at depth.
  double plateau(std::int64_t levels) const;

 protected:
  void write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const override;

 private:
  struct Pair {
    std::int32_t left, right;
  };

  // Writes a string of 2^levels tokens.
  void derive(Draws& draws, std::int64_t levels, std::int32_t* out) const;

  std::int64_t symbols_, choices_, depth_;
  std::vector<std::vector<Pair>> rules_;  // [level from the top][symbol * choices + choice]
};

}  // namespace norma
