// What a study does next with the budget that is left: longer races while curves fall, then the final comparison, long
// runs for what stayed at guessing level, more seeds for ties. A pure function of what is known; docs/study.md has the
// rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/study/long_runs.h"

namespace norma {

// Nothing: all is decided, or the budget does not reach for what is not. `tokens_left` goes into the round.
std::optional<Round> next_round(const StudyState& state, double tokens_left, const PlannerRules& rules = {});

// Pairs of schemes that have finals, with indices into `state.schemes`, at the level of the last look.
std::vector<PairedDifference> final_pairs(const StudyState& state, const PlannerRules& rules = {});
// The same of classifiers: how much larger the share of right answers of `a` is.
std::vector<PairedDifference> right_pairs(const StudyState& state, const PlannerRules& rules = {});

}  // namespace norma
