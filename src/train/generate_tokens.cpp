#include "train/generate_tokens.h"

#include <algorithm>
#include <cmath>

#include "norma/core/error.h"

namespace norma {

AllowedTokens::AllowedTokens(std::int64_t vocabulary, const TokenRules& rules) {
  std::vector<bool> allowed(static_cast<std::size_t>(vocabulary), true);
  for (const std::int32_t token : rules.never) {
    if (token >= 0 && token < vocabulary) allowed[static_cast<std::size_t>(token)] = false;
  }
  for (std::int32_t token = 0; token < vocabulary; ++token) {
    if (allowed[static_cast<std::size_t>(token)]) tokens_.push_back(token);
  }
  if (tokens_.empty()) fail("none of {} tokens may be said", vocabulary);
}

std::vector<std::int32_t> AllowedTokens::best(std::span<const float> logits, std::size_t count) const {
  count = std::min(count, tokens_.size());
  const auto logit = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
  const auto before = [&](std::int32_t a, std::int32_t b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  };
  for (const std::int32_t token : tokens_) {
    if (!std::isfinite(logit(token))) fail("the model's logit of token {} is {}; it has diverged", token, logit(token));
  }
  std::vector<std::int32_t> found(count);
  std::partial_sort_copy(tokens_.begin(), tokens_.end(), found.begin(), found.end(), before);
  return found;
}

std::int64_t most_tokens(const Predictor& predictor, std::span<const std::vector<std::int32_t>> prefixes,
                         const TokenRules& rules) {
  if (rules.most_tokens < 1) fail("at most {} tokens; expected at least 1", rules.most_tokens);
  std::int64_t most = rules.most_tokens;
  for (const std::vector<std::int32_t>& prefix : prefixes) {
    if (prefix.empty()) fail("there is nothing to continue: a prefix has no tokens");
    if (predictor.has_source()) most = std::min(most, predictor.time() + 1 - std::ssize(prefix));
  }
  if (most < 1) fail("the prefix leaves no room in {} tokens", predictor.time());
  return most;
}

}  // namespace norma
