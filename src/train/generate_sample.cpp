// Greedy generation and sampling with temperature among the most probable tokens.
#include <algorithm>
#include <cmath>

#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/train/generate.h"
#include "train/generate_tokens.h"

namespace norma {
namespace {

// exp(logit / temperature) among `tokens`, which come largest first.
std::int32_t draw(std::span<const float> logits, const std::vector<std::int32_t>& tokens, double temperature,
                  double uniform) {
  const auto logit = [&](std::int32_t token) { return static_cast<double>(logits[static_cast<std::size_t>(token)]); };
  const double largest = logit(tokens.front());
  std::vector<double> sums;
  double sum = 0;
  for (const std::int32_t token : tokens) sums.push_back(sum += std::exp((logit(token) - largest) / temperature));
  const auto chosen = std::upper_bound(sums.begin(), sums.end(), uniform * sum) - sums.begin();
  return tokens[std::min(static_cast<std::size_t>(chosen), tokens.size() - 1)];
}

}  // namespace

std::vector<Hypothesis> sample(Predictor& predictor, std::span<const std::vector<std::int32_t>> prefixes,
                               const TokenRules& rules, const SampleOptions& options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature))
    fail("a temperature of {}; expected a finite number from 0", options.temperature);
  if (options.top_k < 0) fail("the best {} tokens; expected at least 1, or 0 for all", options.top_k);
  if (predictor.rows_per_source() != 1 && predictor.has_source())
    fail("sampling takes one row for each source, not {}", predictor.rows_per_source());
  const std::int64_t most = most_tokens(predictor, prefixes, rules);
  const AllowedTokens allowed(predictor.vocabulary(), rules);
  const bool greedy = options.temperature == 0;
  const std::size_t among = greedy ? 1 : options.top_k > 0 ? static_cast<std::size_t>(options.top_k) : allowed.count();
  std::vector<std::vector<std::int32_t>> rows(prefixes.begin(), prefixes.end());
  std::vector<Hypothesis> said(rows.size());
  std::size_t speaking = rows.size();
  for (std::int64_t position = 0; position < most && speaking > 0 && (!options.go_on || options.go_on()); ++position) {
    predictor.run(rows);
    const RandomStream random(options.seed, "generate", static_cast<std::uint64_t>(position));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      Hypothesis& hypothesis = said[row];
      if (hypothesis.ended) continue;
      const auto index = static_cast<std::int64_t>(row);
      const std::span<const float> logits = predictor.logits(index);
      const std::vector<std::int32_t> tokens = allowed.best(logits, among);
      const std::int32_t token =
          greedy ? tokens.front() : draw(logits, tokens, options.temperature, random.uniform(options.first_row + row));
      hypothesis.log_probability +=
          static_cast<double>(logits[static_cast<std::size_t>(token)]) - predictor.log_sum(index);
      hypothesis.ended = token == rules.end;
      if (hypothesis.ended) {
        --speaking;
      } else {
        hypothesis.tokens.push_back(token);
        rows[row].push_back(token);
      }
    }
  }
  for (Hypothesis& hypothesis : said) hypothesis.score = hypothesis.log_probability;
  return said;
}

}  // namespace norma
