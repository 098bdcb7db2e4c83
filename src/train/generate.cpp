// Any number of prompts, in batches of the model's size.
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

std::vector<Hypothesis> generate(const TrainedModel& model, const Source& source,
                                 std::span<const std::vector<std::int32_t>> prompts, const GenerateOptions& options) {
  const ModelConfig& config = model.config.model;
  const bool translates = config.family->speech == Speech::answers;
  const std::int64_t beam = options.beam ? options.beam->beam : 1;
  if (beam < 1) fail("a beam of {}; expected at least 1", beam);
  TokenRules rules = token_rules(source, config);
  rules.most_tokens = options.most_tokens;
  std::vector<Hypothesis> said(prompts.size());
  if (prompts.empty()) return said;
  std::vector<std::size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto at_once = std::clamp<std::size_t>(static_cast<std::size_t>(config.batch / beam), 1, prompts.size());
  constexpr std::size_t kBatchesTogether = 8;
  const std::size_t together = options.done ? at_once * kBatchesTogether : order.size();
  // Prompts of like length together: a batch takes as long as its longest.
  for (std::size_t first = 0; options.beam && first < order.size(); first += together) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
    std::stable_sort(begin, begin + static_cast<std::ptrdiff_t>(std::min(together, order.size() - first)),
                     [&](std::size_t a, std::size_t b) { return prompts[a].size() < prompts[b].size(); });
  }
  std::vector<bool> ready(prompts.size(), false);
  std::size_t told = 0;
  Predictor predictor(model, static_cast<std::int64_t>(at_once) * beam, beam);
  for (std::size_t first = 0; first < order.size(); first += at_once) {
    const std::size_t count = std::min(at_once, order.size() - first);
    std::vector<std::vector<std::int32_t>> some;
    for (std::size_t i = 0; i < count; ++i) some.push_back(prompts[order[first + i]]);
    if (translates) {
      predictor.read_sources(some);
      some.assign(count, {source.special().beginning});
    }
    SampleOptions drawn = options.sample;
    drawn.first_row += first;
    std::vector<Hypothesis> best =
        options.beam ? beam_search(predictor, some, rules, *options.beam) : sample(predictor, some, rules, drawn);
    for (std::size_t i = 0; i < count; ++i) {
      said[order[first + i]] = std::move(best[i]);
      ready[order[first + i]] = true;
    }
    for (; options.done && told < ready.size() && ready[told]; ++told) options.done(told, said[told]);
  }
  return said;
}

}  // namespace norma
