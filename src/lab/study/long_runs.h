// Long runs, of schemes that are no better than guessing: which of them are missing before one is said not to train,
// and what of the budget is kept for them. docs/study.md has the rules.
#pragma once

#include <set>
#include <vector>

#include "lab/study/race.h"

namespace norma {

bool anything_trains(const StudyState& state);

// Long enough that a scheme which begins to learn only there is said to start late.
bool is_long(const Round& round);
// Long enough to say of one that guesses that it does not train: times the length that others are compared at, since
// what is claimed of either must last as long. Where nobody trains there are no others.
std::int64_t steps_of_long_run(const StudyState& state, const PlannerRules& rules = {});

// How a scheme stands after all rounds.
Training training_after(const StudyState& state, std::size_t scheme);
// Rates at which a scheme stayed at guessing level through runs that are long enough to tell, and those at which it was
// above that level still: too small ones, or too few steps, which tell nothing.
std::set<double> rates_stuck_long(const StudyState& state, std::size_t scheme, const PlannerRules& rules = {});
std::set<double> rates_above_guessing_long(const StudyState& state, std::size_t scheme, const PlannerRules& rules = {});

// Runs that are missing before it can be said that a scheme does not train. None: it is said, or cannot be.
std::vector<RoundEntry> missing_long_entries(const StudyState& state, std::size_t scheme,
                                             const PlannerRules& rules = {});
// What all that are missing take where the others are compared after so many steps, in tokens.
double wanted_for_long_runs(const StudyState& state, double compared, const PlannerRules& rules = {});
// What of `left` is kept for them.
double reserve_of(const StudyState& state, double left, const PlannerRules& rules = {});
// How many steps `left` pays for, at so many tokens for each, beside long runs that grow with them.
double steps_paid_for(const StudyState& state, double left, double each, const PlannerRules& rules = {});
// What a study must spend, beyond what this one has, to keep long runs for all schemes that are unclear.
double tokens_to_tell(const StudyState& state, const PlannerRules& rules = {});

}  // namespace norma
