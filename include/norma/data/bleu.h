// BLEU (Papineni et al. 2002) as sacreBLEU computes it by default: over a corpus, 13a tokenisation, case kept, up to
// 4-grams, exponential smoothing of orders without a match, no effective order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace norma {

struct Bleu {
  double score = 0;                    // 0 to 100
  std::array<double, 4> precisions{};  // by order, 0 to 100
  double brevity_penalty = 0;
  std::int64_t hypothesis_length = 0, reference_length = 0;  // in tokens

  std::string describe() const;  // "48.53 82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)"
};

// Throws Error when the counts differ or a hypothesis has no reference.
Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::string> references);
// With several references for each hypothesis.
Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references);

// mteval-v13a's tokens, with one space between them.
std::string tokenize_13a(std::string_view line);

}  // namespace norma
