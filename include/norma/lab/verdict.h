// What a study says about schemes in the end.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/core/words.h"

namespace norma {

// What training made of a scheme, over all settings that were tried.
enum class Judgement {
  stable,
  narrow,
  needs_warmup,
  starts_late,
  does_not_train,
  diverges,
  unclear,
  untested,
  leaks,
  below_optimum
};

inline constexpr Word<Judgement> kJudgementWords[] = {{"stable", Judgement::stable},
                                                      {"narrow", Judgement::narrow},
                                                      {"needs warmup", Judgement::needs_warmup},
                                                      {"starts late", Judgement::starts_late},
                                                      {"does not train", Judgement::does_not_train},
                                                      {"diverges", Judgement::diverges},
                                                      {"not enough training to tell", Judgement::unclear},
                                                      {"untested", Judgement::untested},
                                                      {"leaks", Judgement::leaks},
                                                      {"below the optimum", Judgement::below_optimum}};
constexpr std::span<const Word<Judgement>> words_for(Judgement) { return kJudgementWords; }
inline std::string_view name_of(Judgement judgement) { return word_for(words_for(judgement), judgement); }

// Whether the rate of the best setting is an end of those tried: a better one may lie beyond.
enum class RateEdge { none, smallest, largest };

inline constexpr Word<RateEdge> kRateEdgeWords[] = {
    {"none", RateEdge::none}, {"smallest", RateEdge::smallest}, {"largest", RateEdge::largest}};
constexpr std::span<const Word<RateEdge>> words_for(RateEdge) { return kRateEdgeWords; }
inline std::string_view name_of(RateEdge edge) { return word_for(words_for(edge), edge); }

struct EvidenceItem {
  std::string text;
  double value = 0;
  double low = 0, high = 0;  // 95 % interval; equal where there is none
};

struct Verdict {
  std::string scheme;
  int rank = 0;  // from 1; 0: it is not ranked
  Judgement verdict = Judgement::untested;
  std::string words = {};
  std::vector<EvidenceItem> evidence = {};
};

struct Advice {
  std::string words, confidence;
  std::string choice = {};  // the scheme to use; empty: undecided, or nothing trained
  std::vector<std::string> ranking, not_tested;
};

// Rates of one scheme beyond the grid that all schemes share.
struct ExtraRates {
  std::string scheme;
  std::vector<double> lr;
  RateEdge edge = RateEdge::none;
};

}  // namespace norma
