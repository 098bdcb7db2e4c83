#include "lab/study/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "norma/core/error.h"

namespace norma {
namespace {

std::vector<const PlayedRound*> rounds_in(const StudyState& state, Stage stage) {
  std::vector<const PlayedRound*> all;
  for (const PlayedRound& played : state.played) {
    if (played.round.stage == stage) all.push_back(&played);
  }
  return all;
}

std::vector<std::int64_t> final_seeds(const StudyState& state, std::size_t from, std::size_t until) {
  const std::int64_t first = 1 + *std::ranges::max_element(state.tuning_seeds);
  std::vector<std::int64_t> seeds;
  for (std::size_t i = from; i < until; ++i) seeds.push_back(first + static_cast<std::int64_t>(i));
  return seeds;
}

std::size_t schemes_in(const std::vector<RoundEntry>& entries) {
  std::set<std::size_t> schemes;
  for (const RoundEntry& entry : entries) schemes.insert(entry.scheme);
  return schemes.size();
}

// Seeds of each scheme in the first final, where so many schemes are in it.
int first_final_seeds(const StudyState& state, std::size_t schemes, const PlannerRules& rules) {
  const double raced = static_cast<double>(rules.later_settings) * static_cast<double>(state.tuning_seeds.size());
  return seeds_of_comparison(schemes, alpha_of_look(rules.alpha, 1), raced, rules.most_first_seeds);
}

// What a step costs in a race, and in the final comparison that must still be paid for.
double tokens_of_step(const StudyState& state, const Round& round, const PlannerRules& rules) {
  const std::size_t schemes = schemes_in(round.entries);
  const double finals = static_cast<double>(schemes) * first_final_seeds(state, schemes, rules);
  return (static_cast<double>(round.runs()) + finals) * state.tokens_per_step;
}

std::optional<Round> next_race(const StudyState& state, double left, const PlannerRules& rules) {
  const bool first = rounds_in(state, Stage::race).empty();
  std::vector<std::string> falling;
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme) {
    if (still_falls(state, scheme, rules)) falling.push_back(state.schemes[scheme].title);
  }
  const std::int64_t before = raced_steps(state);
  const bool waits = !anything_trains(state) && before < rules.long_steps;  // for anybody to begin
  if (falling.empty() && !first && !waits) return std::nullopt;
  const double twice = 2.0 * static_cast<double>(before);
  Round round{.stage = Stage::race};
  PlannerRules settings = rules;
  const auto affordable = [&] {
    round.entries = racing_entries(state, 2 * before, settings);
    return steps_paid_for(state, left, tokens_of_step(state, round, rules), rules);
  };
  double steps = std::min(twice, affordable());
  if (first && steps < twice) {  // fewer settings, longer runs
    settings.first_settings = rules.later_settings;
    steps = std::min(twice, affordable());
  }
  if (round.entries.empty() || steps < rules.least_growth * static_cast<double>(before)) return std::nullopt;
  round.steps = static_cast<std::int64_t>(steps);
  round.entries = racing_entries(state, round.steps, settings);  // as many, with the warmup of that length
  // Waiting does not use up the runs that would tell that nobody begins, unless it is as long as they are.
  const double wanted = waits && round.steps < rules.long_steps ? wanted_for_long_runs(state, 0, rules) : 0;
  if (wanted <= left && round.member_steps() * state.tokens_per_step > left - wanted) return std::nullopt;
  round.why = first             ? "the best settings of the map, longer"
              : falling.empty() ? "no scheme is below guessing level yet"
                                : fmt::format("still falling: {}", fmt::join(falling, ", "));
  return round;
}

// The same length again, with smaller rates for the schemes whose best is the smallest tried at it.
std::optional<Round> race_at_edge(const StudyState& state, double left, const PlannerRules& rules) {
  Round round{.stage = Stage::race, .steps = raced_steps(state), .entries = edge_entries(state)};
  if (round.entries.empty()) return std::nullopt;
  const auto before = std::ranges::count_if(state.played, [&](const PlayedRound& played) {
    return played.round.stage == Stage::race && played.round.steps == round.steps;
  });
  if (before > rules.edge_rounds) return std::nullopt;  // the first of them was the race itself
  std::size_t finalists = 0;
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme)
    finalists += trains_anywhere(state, scheme) ? 1 : 0;
  const double final_runs = static_cast<double>(finalists) * first_final_seeds(state, finalists, rules);
  const double needed = (static_cast<double>(round.runs()) + final_runs) * static_cast<double>(round.steps);
  if (needed * state.tokens_per_step + reserve_of(state, left, rules) > left) return std::nullopt;
  std::vector<std::string> names;
  for (const RoundEntry& entry : round.entries)
    names.push_back(fmt::format("{} at {:g}", state.schemes[entry.scheme].title, entry.lr));
  round.why =
      fmt::format("smaller rates, as the best at this length is the smallest tried: {}", fmt::join(names, ", "));
  return round;
}

std::optional<Round> first_final(const StudyState& state, double left, const PlannerRules& rules) {
  Round round{.stage = Stage::final, .steps = raced_steps(state)};
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme) {
    if (const auto setting = chosen_setting(state, scheme, rules))
      round.entries.push_back({scheme, setting->lr, setting->warmup, {}});
  }
  if (round.entries.empty()) return std::nullopt;
  const double one_seed =
      static_cast<double>(round.entries.size()) * static_cast<double>(round.steps) * state.tokens_per_step;
  double seeds = std::floor((left - reserve_of(state, left, rules)) / one_seed);
  if (seeds < rules.least_final_seeds) seeds = std::floor(left / one_seed);
  seeds = std::min(seeds, static_cast<double>(first_final_seeds(state, round.entries.size(), rules)));
  if (seeds < rules.least_final_seeds) return std::nullopt;
  for (RoundEntry& entry : round.entries) entry.seeds = final_seeds(state, 0, static_cast<std::size_t>(seeds));
  round.why = "each scheme at its own setting, with fresh seeds and fresh held-out data";
  return round;
}

// Small rates for each scheme at guessing level, as far as the budget goes.
std::optional<Round> long_round(const StudyState& state, double left, const PlannerRules& rules) {
  Round round{.stage = Stage::longest, .steps = steps_of_long_run(state, rules)};
  const double each = static_cast<double>(round.steps) * state.tokens_per_step;
  std::set<std::string> names;
  for (std::size_t index = 0; index < static_cast<std::size_t>(rules.long_rates); ++index) {
    for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme) {  // one for everybody before a second one
      if (training_after(state, scheme) != Training::unclear || left < each) continue;
      const std::vector<RoundEntry> entries = missing_long_entries(state, scheme, rules);
      if (entries.size() <= index) continue;
      round.entries.push_back(entries[index]);
      names.insert(state.schemes[scheme].title);
      left -= each;
    }
  }
  if (round.entries.empty()) return std::nullopt;
  round.why = fmt::format("at guessing level so far: {}", fmt::join(names, ", "));
  return round;
}

// Schemes that no interval separates from the leader; where there are none, from each other.
std::set<std::size_t> tied_schemes(const StudyState& state, const PlannerRules& rules) {
  std::size_t leader = state.finals.size();
  for (std::size_t scheme = 0; scheme < state.finals.size(); ++scheme) {
    if (state.finals[scheme].empty()) continue;
    if (leader == state.finals.size() ||
        crossed_mean(state.finals[scheme]).mean < crossed_mean(state.finals[leader]).mean)
      leader = scheme;
  }
  std::set<std::size_t> with_leader, others;
  for (const PairedDifference& pair : final_pairs(state, rules)) {
    const bool same =
        std::max(std::abs(pair.difference.low), std::abs(pair.difference.high)) < rules.same && pair.difference.n > 1;
    if (pair.apart || same) continue;
    std::set<std::size_t>& tied = pair.a == leader || pair.b == leader ? with_leader : others;
    tied.insert({pair.a, pair.b});
  }
  return with_leader.empty() ? others : with_leader;
}

std::optional<Round> more_seeds(const StudyState& state, double left, const PlannerRules& rules) {
  const std::vector<const PlayedRound*> finals = rounds_in(state, Stage::final);
  if (finals.empty()) return std::nullopt;
  const std::set<std::size_t> tied = tied_schemes(state, rules);
  if (tied.empty()) return std::nullopt;
  std::size_t most = 0;
  for (const std::size_t scheme : tied) most = std::max(most, state.finals[scheme].size());
  std::vector<std::string> names;
  for (const std::size_t scheme : tied) names.push_back(state.schemes[scheme].title);
  const std::size_t wanted =
      std::min(most + std::max<std::size_t>(2, most / 2), static_cast<std::size_t>(rules.most_final_seeds));
  for (std::size_t until = wanted; until > most; --until) {  // as many as there is budget for
    Round round{.stage = Stage::final, .steps = finals[0]->round.steps};
    for (const RoundEntry& entry : finals[0]->round.entries) {
      if (!tied.contains(entry.scheme)) continue;
      round.entries.push_back(
          {entry.scheme, entry.lr, entry.warmup, final_seeds(state, state.finals[entry.scheme].size(), until)});
    }
    if (round.member_steps() * state.tokens_per_step > left) continue;
    round.why = fmt::format("tied: {}", fmt::join(names, ", "));
    return round;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Round> next_round(const StudyState& state, double tokens_left, const PlannerRules& rules) {
  NORMA_ASSERT(!state.tuning_seeds.empty());
  std::optional<Round> round;
  if (rounds_in(state, Stage::final).empty()) {
    round = next_race(state, tokens_left, rules);
    if (!round) round = race_at_edge(state, tokens_left, rules);
    if (!round) round = first_final(state, tokens_left, rules);
  }
  if (!round) round = long_round(state, tokens_left, rules);
  if (!round) round = more_seeds(state, tokens_left, rules);
  if (round) round->tokens_left = tokens_left;
  return round;
}

}  // namespace norma
