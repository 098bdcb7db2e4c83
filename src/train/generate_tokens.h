// Which tokens may come next, and the best of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "norma/train/generate.h"

namespace norma {

class AllowedTokens {
 public:
  AllowedTokens(std::int64_t vocabulary, const TokenRules& rules);

  // The `count` tokens with the largest logits, largest first, equal ones by id. Throws Error when a logit is not
  // finite.
  std::vector<std::int32_t> best(std::span<const float> logits, std::size_t count) const;
  std::size_t count() const { return tokens_.size(); }

 private:
  std::vector<std::int32_t> tokens_;
};

// How many tokens a search may add, for every prefix. Throws Error when a prefix is empty or leaves no room.
std::int64_t most_tokens(const Predictor& predictor, std::span<const std::vector<std::int32_t>> prefixes,
                         const TokenRules& rules);

}  // namespace norma
