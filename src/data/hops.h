// Pointer chasing: a row lists a cyclic permutation p as tokens "x>p(x)", one for each pair, in random order, then asks
// "?j x" for j = 1..hops and is to answer p^j(x), a different x each time. Only answers are counted; each follows from
// the row, so the optimum is 0. A model that follows fewer than j pointers cannot do better than ln(symbols - 1) on a
// j-hop query, unless an earlier answer helps: the permutation is one cycle, so that no walk returns early. A pair is
// one token because written as two, with each symbol both a key and a value, small models did not begin to learn the
// task in 8,000 steps. Tokens: pairs x * symbols + y, then symbols, then a query mark for each j.
#pragma once

#include "data/generated.h"

namespace norma {

class Hops final : public GeneratedRows {
 public:
  static constexpr std::int64_t kMostSymbols = 256, kUsualSymbols = 8, kUsualHops = 4;

  Hops(const DataConfig& config, const BatchShape& shape);

  std::int64_t vocabulary() const override { return symbols_ * symbols_ + symbols_ + hops_; }
  std::optional<double> optimum() const override { return 0.0; }
  std::string describe() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;

 protected:
  void write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const override;

 private:
  std::int64_t symbols_, hops_, queries_;
};

}  // namespace norma
