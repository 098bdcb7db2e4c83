// Translation of any number of sentences, in batches that the model's plan takes.
#include <algorithm>
#include <numeric>

#include "norma/core/error.h"
#include "norma/data/source.h"
#include "norma/train/generate.h"

namespace norma {

TokenRules token_rules(const Source& source, const ModelConfig& config) {
  const SpecialTokens special = source.special();
  TokenRules rules{.most_tokens = config.time, .end = special.end};
  for (const std::int32_t token : {special.padding, special.beginning, special.separator, special.mask}) {
    if (token >= 0) rules.never.push_back(token);
  }
  for (std::int64_t token = source.vocabulary(); token < config.vocabulary; ++token)
    rules.never.push_back(static_cast<std::int32_t>(token));
  return rules;
}

std::vector<Hypothesis> translate(const TrainedModel& model, const Source& source,
                                  std::span<const std::vector<std::int32_t>> sources, const BeamOptions& options) {
  const ModelConfig& config = model.config.model;
  if (config.family != Family::encoder_decoder) fail("this model is no encoder-decoder; it translates nothing");
  if (options.beam < 1) fail("a beam of {}; expected at least 1", options.beam);
  std::vector<Hypothesis> translated(sources.size());
  if (sources.empty()) return translated;
  const TokenRules rules = token_rules(source, config);
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sources[a].size() < sources[b].size(); });
  const auto at_once =
      std::clamp<std::size_t>(static_cast<std::size_t>(config.batch / options.beam), 1, sources.size());
  Predictor predictor(model, static_cast<std::int64_t>(at_once) * options.beam, options.beam);
  for (std::size_t first = 0; first < order.size(); first += at_once) {
    const std::size_t count = std::min(at_once, order.size() - first);
    std::vector<std::vector<std::int32_t>> some;
    for (std::size_t i = 0; i < count; ++i) some.push_back(sources[order[first + i]]);
    predictor.read_sources(some);
    const std::vector<std::vector<std::int32_t>> prefixes(count, {source.special().beginning});
    std::vector<Hypothesis> best = beam_search(predictor, prefixes, rules, options);
    for (std::size_t i = 0; i < count; ++i) translated[order[first + i]] = std::move(best[i]);
  }
  return translated;
}

}  // namespace norma
