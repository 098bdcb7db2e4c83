// The course of a study: which stages it went through, and what its final comparison found.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/core/words.h"
#include "norma/lab/estimate.h"

namespace norma {

// The map of rates and warmups comes first; the others are rounds that were decided on by what had been found.
enum class Stage { map, race, final, longest };

inline constexpr Word<Stage> kStageWords[] = {
    {"map", Stage::map}, {"race", Stage::race}, {"final", Stage::final}, {"long", Stage::longest}};
constexpr std::span<const Word<Stage>> words_for(Stage) { return kStageWords; }
inline std::string_view name_of(Stage stage) { return word_for(words_for(stage), stage); }

struct CourseRound {
  Stage stage = Stage::map;
  std::int64_t steps = 0, runs = 0;
  std::vector<std::int64_t> seeds;
  std::string why;
};

struct Course {
  std::string budget;  // "180s"
  double tokens = 0;   // of all runs
  std::vector<CourseRound> rounds;
};

// Two schemes of the final: how much more `a` loses than `b`.
struct Comparison {
  std::string a, b;
  Estimate difference = {};
  double p = 1, adjusted_p = 1;
  bool apart = false;
  // Apart, and more than the one behind would gain from ten times the training at its present pace.
  bool lasting = false;
  // Of classifiers: how much larger the share of right answers of `a` is, paired over seeds and held-out records. At
  // the level at which this pair was decided among all: excludes 0 exactly when one has more right answers at this
  // length.
  std::optional<Estimate> right = {};
};

}  // namespace norma
