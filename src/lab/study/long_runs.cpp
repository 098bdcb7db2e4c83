#include "lab/study/long_runs.h"

#include <algorithm>

namespace norma {
namespace {

// Times as long as the runs that others are compared by: what is claimed of either must last as long. Where nobody
// trains there are no others.
std::int64_t steps_of_long_run(const StudyState& state, double compared, const PlannerRules& rules) {
  if (!anything_trains(state)) return rules.long_steps;
  return std::max(rules.long_steps, static_cast<std::int64_t>(rules.more_training * compared));
}

// All runs of a scheme that are as long as that, also those of races where nobody trained.
std::vector<RoundRun> long_runs_of(const StudyState& state, std::size_t scheme, const PlannerRules& rules) {
  std::vector<RoundRun> runs;
  for (const PlayedRound& played : state.played) {
    if (played.round.steps < steps_of_long_run(state, rules)) continue;
    for (const RoundRun& run : played.runs)
      if (run.scheme == scheme) runs.push_back(run);
  }
  return runs;
}

double missing_long_runs(const StudyState& state, const PlannerRules& rules) {
  double runs = 0;
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme) {
    if (training_after(state, scheme) == Training::unclear)
      runs += static_cast<double>(missing_long_entries(state, scheme, rules).size());
  }
  return runs;
}

double tokens_of_shortest_run(const StudyState& state, const PlannerRules& rules) {
  return static_cast<double>(rules.long_steps) * state.tokens_per_step;
}

// Whether that is kept for them where others train: by the share that the shortest long runs have of what was there
// after the map, so that a larger budget never takes it away.
bool keeps_for_long_runs(const StudyState& state, double left, const PlannerRules& rules) {
  if (!anything_trains(state)) return false;
  const double at_first = state.played.empty() ? left : std::max(left, state.played[0].round.tokens_left);
  return missing_long_runs(state, rules) * tokens_of_shortest_run(state, rules) <= rules.long_share * at_first;
}

}  // namespace

bool anything_trains(const StudyState& state) {
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme) {
    if (trains_anywhere(state, scheme)) return true;
  }
  return false;
}

std::int64_t steps_of_long_run(const StudyState& state, const PlannerRules& rules) {
  return steps_of_long_run(state, static_cast<double>(raced_steps(state)), rules);
}

std::vector<RoundEntry> missing_long_entries(const StudyState& state, std::size_t scheme, const PlannerRules& rules) {
  std::vector<RoundEntry> entries = long_entries(state, scheme, steps_of_long_run(state, rules), rules);
  const std::size_t needed = std::min(entries.size(), static_cast<std::size_t>(rules.long_rates)),
                    found = rates_stuck_long(state, scheme, rules).size();
  const std::vector<RoundRun> runs = long_runs_of(state, scheme, rules);
  std::erase_if(entries, [&](const RoundEntry& entry) {
    return std::ranges::any_of(runs, [&](const RoundRun& run) { return run.lr == entry.lr; });
  });
  entries.resize(std::min(entries.size(), needed - std::min(needed, found)));
  return entries;
}

double wanted_for_long_runs(const StudyState& state, double compared, const PlannerRules& rules) {
  return missing_long_runs(state, rules) * static_cast<double>(steps_of_long_run(state, compared, rules)) *
         state.tokens_per_step;
}

double reserve_of(const StudyState& state, double left, const PlannerRules& rules) {
  if (!keeps_for_long_runs(state, left, rules)) return 0;
  return std::min(left, wanted_for_long_runs(state, static_cast<double>(raced_steps(state)), rules));
}

double steps_paid_for(const StudyState& state, double left, double each, const PlannerRules& rules) {
  if (!keeps_for_long_runs(state, left, rules)) return left / each;
  const double shortest = (left - wanted_for_long_runs(state, 0, rules)) / each;
  const double growing = missing_long_runs(state, rules) * rules.more_training * state.tokens_per_step;
  return std::min(shortest, left / (each + growing));
}

bool is_long(const Round& round) { return round.stage == Stage::longest || round.steps >= PlannerRules{}.long_steps; }

Training training_after(const StudyState& state, std::size_t scheme) {
  if (state.schemes[scheme].cells.empty()) return Training::untested;
  if (trains_anywhere(state, scheme)) return Training::trains;
  for (const PlayedRound& played : state.played) {
    for (const RoundRun& run : played.runs) {
      if (run.scheme == scheme && is_long(played.round) && run.learned && !run.diverged) return Training::late;
    }
  }
  const PlannerRules rules;
  const std::size_t possible = std::min(long_entries(state, scheme, steps_of_long_run(state, rules), rules).size(),
                                        static_cast<std::size_t>(rules.long_rates));
  if (possible == 0) return Training::diverges;
  return rates_stuck_long(state, scheme, rules).size() >= possible ? Training::stuck : Training::unclear;
}

std::set<double> rates_stuck_long(const StudyState& state, std::size_t scheme, const PlannerRules& rules) {
  std::set<double> rates;
  for (const RoundRun& run : long_runs_of(state, scheme, rules))
    if (run.guesses) rates.insert(run.lr);
  return rates;
}

std::set<double> rates_above_guessing_long(const StudyState& state, std::size_t scheme, const PlannerRules& rules) {
  std::set<double> rates;
  for (const RoundRun& run : long_runs_of(state, scheme, rules))
    if (!run.diverged && !run.learned && !run.guesses) rates.insert(run.lr);
  return rates;
}

double tokens_to_tell(const StudyState& state, const PlannerRules& rules) {
  double schemes = 0;
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme)
    schemes += training_after(state, scheme) == Training::unclear ? 1 : 0;
  return schemes * rules.long_rates * tokens_of_shortest_run(state, rules) / rules.long_share;
}

}  // namespace norma
