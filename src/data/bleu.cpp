#include "norma/data/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::size_t kOrders = 4;

using Words = std::vector<std::string_view>;
using Counts = std::unordered_map<std::string_view, std::int64_t>;

Words words_of(std::string_view tokenized) {
  Words words;
  for (std::size_t at = 0; at < tokenized.size();) {
    const std::size_t end = std::min(tokenized.find(' ', at), tokenized.size());
    words.push_back(tokenized.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// n-grams as stretches of the tokenised line, words and the single spaces between them.
Counts ngrams(const Words& words, std::size_t order) {
  Counts counts;
  for (std::size_t i = 0; i + order <= words.size(); ++i) {
    const std::string_view last = words[i + order - 1];
    ++counts[{words[i].data(), static_cast<std::size_t>(last.data() + last.size() - words[i].data())}];
  }
  return counts;
}

struct Statistics {
  std::array<std::int64_t, kOrders> correct{}, total{};
  std::int64_t hypothesis_length = 0, reference_length = 0;

  void add(const std::string& hypothesis, std::span<const std::string> references) {
    const std::string tokenized = tokenize_13a(hypothesis);
    const Words words = words_of(tokenized);
    std::vector<std::string> others;
    for (const std::string& reference : references) others.push_back(tokenize_13a(reference));
    const auto length = static_cast<std::int64_t>(words.size());
    std::int64_t closest = -1;
    for (const std::string& other : others) {
      const auto candidate = static_cast<std::int64_t>(words_of(other).size());
      const std::int64_t distance = std::abs(candidate - length), best = std::abs(closest - length);
      if (closest < 0 || distance < best || (distance == best && candidate < closest)) closest = candidate;
    }
    hypothesis_length += length;
    reference_length += closest;
    for (std::size_t order = 1; order <= kOrders; ++order) {
      Counts allowed;
      for (const std::string& other : others) {
        for (const auto& [ngram, count] : ngrams(words_of(other), order)) {
          allowed[ngram] = std::max(allowed[ngram], count);
        }
      }
      for (const auto& [ngram, count] : ngrams(words, order)) {
        total[order - 1] += count;
        if (const auto found = allowed.find(ngram); found != allowed.end()) {
          correct[order - 1] += std::min(count, found->second);
        }
      }
    }
  }

  Bleu score() const {
    Bleu bleu;
    bleu.hypothesis_length = hypothesis_length;
    bleu.reference_length = reference_length;
    bleu.brevity_penalty = 1;
    if (hypothesis_length < reference_length) {
      bleu.brevity_penalty =
          hypothesis_length == 0
              ? 0
              : std::exp(1 - static_cast<double>(reference_length) / static_cast<double>(hypothesis_length));
    }
    if (std::ranges::all_of(correct, [](std::int64_t c) { return c == 0; })) return bleu;
    double smoothing = 1, logs = 0;
    for (std::size_t i = 0; i < kOrders; ++i) {
      if (total[i] == 0) return bleu;  // an order without n-grams has precision 0, and so has their product
      double matches = static_cast<double>(correct[i]);
      if (correct[i] == 0) matches = 1 / (smoothing *= 2);
      bleu.precisions[i] = 100 * matches / static_cast<double>(total[i]);
      logs += std::log(bleu.precisions[i]);
    }
    bleu.score = bleu.brevity_penalty * std::exp(logs / kOrders);
    return bleu;
  }
};

void check_counts(std::size_t hypotheses, std::size_t references) {
  if (hypotheses != references)
    fail("BLEU of {} hypotheses and {} references; expected as many", hypotheses, references);
}

}  // namespace

Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::string> references) {
  check_counts(hypotheses.size(), references.size());
  Statistics statistics;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) statistics.add(hypotheses[i], references.subspan(i, 1));
  return statistics.score();
}

Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references) {
  check_counts(hypotheses.size(), references.size());
  Statistics statistics;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    if (references[i].empty()) fail("BLEU: hypothesis {} has no reference", i);
    statistics.add(hypotheses[i], references[i]);
  }
  return statistics.score();
}

std::string Bleu::describe() const {
  const double ratio =
      reference_length == 0 ? 0 : static_cast<double>(hypothesis_length) / static_cast<double>(reference_length);
  return fmt::format("{:.2f} {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", score,
                     precisions[0], precisions[1], precisions[2], precisions[3], brevity_penalty, ratio,
                     hypothesis_length, reference_length);
}

}  // namespace norma
