#include "lab/study/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "norma/core/error.h"

namespace norma {
namespace {

constexpr double kNoLoss = std::numeric_limits<double>::infinity();

std::vector<RacedSetting> settings_in_map(const SchemeEvidence& evidence) {
  std::vector<RacedSetting> all;
  for (const TrainedCell& cell : evidence.cells)
    all.push_back({.lr = cell.lr,
                   .warmup = cell.warmup,
                   .loss = cell.loss.n > 0 && cell.diverged == 0 ? cell.loss.mean : kNoLoss,
                   .trains = cell.trains(),
                   .diverged = cell.diverged > 0 || cell.faulty > 0});
  return all;
}

// Those that train before those that do not, then by loss; what diverged is out.
std::vector<RacedSetting> best_first(std::vector<RacedSetting> all) {
  std::erase_if(all, [](const RacedSetting& one) { return one.diverged; });
  std::stable_sort(all.begin(), all.end(), [](const RacedSetting& a, const RacedSetting& b) {
    return a.trains != b.trains ? a.trains : a.loss < b.loss;
  });
  return all;
}

std::vector<const PlayedRound*> rounds_in(const StudyState& state, Stage stage) {
  std::vector<const PlayedRound*> all;
  for (const PlayedRound& played : state.played) {
    if (played.round.stage == stage) all.push_back(&played);
  }
  return all;
}

// Of the last race, or of the map before there was one; `back` rounds before that.
std::vector<RacedSetting> last_settings(const StudyState& state, std::size_t scheme, std::size_t back = 0) {
  const std::vector<const PlayedRound*> races = rounds_in(state, Stage::race);
  if (races.size() <= back) return settings_in_map(state.schemes[scheme]);
  return settings_of(*races[races.size() - 1 - back], scheme);
}

double best_loss(const std::vector<RacedSetting>& settings) {
  double best = kNoLoss;
  for (const RacedSetting& one : settings) best = std::min(best, one.trains ? one.loss : kNoLoss);
  return best;
}

bool trains_anywhere(const StudyState& state, std::size_t scheme) {
  if (best_loss(settings_in_map(state.schemes[scheme])) < kNoLoss) return true;
  return std::ranges::any_of(rounds_in(state, Stage::race),
                             [&](const PlayedRound* race) { return best_loss(settings_of(*race, scheme)) < kNoLoss; });
}

std::vector<std::int64_t> final_seeds(const StudyState& state, std::size_t from, std::size_t until) {
  const std::int64_t first = 1 + *std::ranges::max_element(state.tuning_seeds);
  std::vector<std::int64_t> seeds;
  for (std::size_t i = from; i < until; ++i) seeds.push_back(first + static_cast<std::int64_t>(i));
  return seeds;
}

// The settings of each scheme that run on; the schemes that have none are not in it.
std::vector<RoundEntry> racing_entries(const StudyState& state, int most, const PlannerRules& rules) {
  std::vector<RoundEntry> entries;
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme) {
    std::vector<RacedSetting> settings = best_first(last_settings(state, scheme));
    const std::optional<RacedSetting> chosen = chosen_setting(state, scheme, rules);
    if (settings.size() > static_cast<std::size_t>(most)) settings.resize(static_cast<std::size_t>(most));
    const bool kept = !chosen || std::ranges::any_of(settings, [&](const RacedSetting& one) {
      return one.lr == chosen->lr && one.warmup == chosen->warmup;
    });
    if (!kept) settings.back() = *chosen;  // as good, and with margin
    for (const RacedSetting& one : settings) entries.push_back({scheme, one.lr, one.warmup, state.tuning_seeds});
  }
  return entries;
}

std::size_t schemes_in(const std::vector<RoundEntry>& entries) {
  std::set<std::size_t> schemes;
  for (const RoundEntry& entry : entries) schemes.insert(entry.scheme);
  return schemes.size();
}

std::int64_t steps_of_long_run(const StudyState& state, const PlannerRules& rules) {
  const double relative = rules.long_factor * static_cast<double>(raced_steps(state));
  return std::max(rules.long_steps, static_cast<std::int64_t>(relative));
}

bool had_long_run(const StudyState& state, std::size_t scheme) {
  return std::ranges::any_of(rounds_in(state, Stage::longest), [&](const PlayedRound* played) {
    return std::ranges::any_of(played->runs, [&](const RoundRun& run) { return run.scheme == scheme; });
  });
}

// What is kept for long runs of schemes at guessing level while others train: at first if it is at most half of all.
double reserve_of(const StudyState& state, double left, const PlannerRules& rules) {
  double schemes = 0;
  bool any = false;
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme) {
    any = any || trains_anywhere(state, scheme);
    if (training_after(state, scheme) == Training::unclear && !had_long_run(state, scheme)) ++schemes;
  }
  const double reserve = schemes * static_cast<double>(steps_of_long_run(state, rules)) * state.tokens_per_step;
  const double most = rounds_in(state, Stage::race).empty() ? left / 2 : left;
  return any && reserve <= most ? reserve : 0;
}

std::optional<Round> next_race(const StudyState& state, double left, const PlannerRules& rules) {
  const bool first = rounds_in(state, Stage::race).empty();
  std::vector<std::string> falling;
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme) {
    if (still_falls(state, scheme, rules)) falling.push_back(state.schemes[scheme].title);
  }
  std::size_t training = 0;
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme)
    training += trains_anywhere(state, scheme) ? 1 : 0;
  const bool waits = training == 0 && raced_steps(state) < rules.long_steps;  // for anybody to begin
  if (falling.empty() && !first && !waits) return std::nullopt;
  Round round{.stage = Stage::race,
              .entries = racing_entries(state, first ? rules.first_settings : rules.later_settings, rules)};
  if (round.entries.empty()) return std::nullopt;
  // What a step costs now, and in the final comparison that must still be paid for.
  const double each = static_cast<double>(round.runs()) +
                      static_cast<double>(schemes_in(round.entries)) * static_cast<double>(rules.final_seeds);
  const std::int64_t before = raced_steps(state);
  const double affordable = (left - reserve_of(state, left, rules)) / (each * state.tokens_per_step);
  const double steps = std::min(2.0 * static_cast<double>(before), affordable);
  if (steps < rules.least_growth * static_cast<double>(before)) return std::nullopt;
  round.steps = static_cast<std::int64_t>(steps);
  round.why = first             ? "the best settings of the map, longer"
              : falling.empty() ? "no scheme is below guessing level yet"
                                : fmt::format("still falling: {}", fmt::join(falling, ", "));
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
  seeds = std::min(seeds, static_cast<double>(rules.final_seeds));
  if (seeds < rules.least_final_seeds) return std::nullopt;
  for (RoundEntry& entry : round.entries) entry.seeds = final_seeds(state, 0, static_cast<std::size_t>(seeds));
  round.why = "each scheme at its own setting, with fresh seeds and fresh held-out data";
  return round;
}

// Two settings of each scheme at guessing level, as far as the budget goes.
std::optional<Round> long_round(const StudyState& state, double left, const PlannerRules& rules) {
  Round round{.stage = Stage::longest, .steps = steps_of_long_run(state, rules)};
  const double each = static_cast<double>(round.steps) * state.tokens_per_step;
  std::vector<std::string> names;
  for (const int settings : {1, 2}) {  // one for everybody before a second one for anybody
    for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme) {
      const std::vector<RacedSetting> best = best_first(last_settings(state, scheme));
      const auto index = static_cast<std::size_t>(settings - 1);
      if (training_after(state, scheme) != Training::unclear || had_long_run(state, scheme)) continue;
      if (best.size() <= index || left < each) continue;
      round.entries.push_back({scheme, best[index].lr, best[index].warmup, {state.tuning_seeds[0]}});
      left -= each;
      if (index == 0) names.push_back(state.schemes[scheme].title);
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

std::vector<RacedSetting> settings_of(const PlayedRound& played, std::size_t scheme) {
  std::vector<RacedSetting> all;
  std::vector<int> seeds;
  for (const RoundRun& run : played.runs) {
    if (run.scheme != scheme) continue;
    auto found = std::ranges::find_if(
        all, [&](const RacedSetting& one) { return one.lr == run.lr && one.warmup == run.warmup; });
    if (found == all.end()) {
      all.push_back({.lr = run.lr, .warmup = run.warmup, .trains = true});
      seeds.push_back(0);
      found = all.end() - 1;
    }
    int& count = seeds[static_cast<std::size_t>(found - all.begin())];
    found->loss = (found->loss * count + run.loss) / (count + 1);
    ++count;
    found->diverged = found->diverged || run.diverged;
    found->trains = found->trains && run.learned && !run.diverged;
  }
  return all;
}

bool is_long(const Round& round) { return round.stage == Stage::longest || round.steps >= PlannerRules{}.long_steps; }

std::int64_t raced_steps(const StudyState& state) {
  const std::vector<const PlayedRound*> races = rounds_in(state, Stage::race);
  return races.empty() ? state.map_steps : races.back()->round.steps;
}

std::optional<RacedSetting> chosen_setting(const StudyState& state, std::size_t scheme, const PlannerRules& rules) {
  const std::vector<RacedSetting> settings = best_first(last_settings(state, scheme));
  if (settings.empty() || !settings[0].trains) return std::nullopt;
  for (const RacedSetting& one : settings) {
    if (one.trains && one.loss <= settings[0].loss + rules.tied &&
        has_margin(state.schemes[scheme], one.lr, one.warmup))
      return one;
  }
  return settings[0];
}

bool has_margin(const SchemeEvidence& evidence, double lr, std::int64_t warmup) {
  const TrainedCell* next = nullptr;
  for (const TrainedCell& cell : evidence.cells) {
    if (cell.warmup == warmup && cell.lr > lr && (next == nullptr || cell.lr < next->lr)) next = &cell;
  }
  return next != nullptr && next->trains();
}

bool still_falls(const StudyState& state, std::size_t scheme, const PlannerRules& rules) {
  if (rounds_in(state, Stage::race).empty()) return true;
  const double now = best_loss(last_settings(state, scheme)), before = best_loss(last_settings(state, scheme, 1));
  return now < kNoLoss && now < before - rules.flat;
}

Training training_after(const StudyState& state, std::size_t scheme) {
  const std::vector<TrainedCell>& cells = state.schemes[scheme].cells;
  if (cells.empty()) return Training::untested;
  if (trains_anywhere(state, scheme)) return Training::trains;
  bool stayed = false;
  for (const PlayedRound& played : state.played) {
    for (const RoundRun& run : played.runs) {
      if (run.scheme != scheme || !is_long(played.round)) continue;
      if (run.learned && !run.diverged) return Training::late;
      stayed = stayed || !run.diverged;
    }
  }
  if (stayed) return Training::stuck;
  return best_first(settings_in_map(state.schemes[scheme])).empty() ? Training::diverges : Training::unclear;
}

double tokens_of_long_run(const StudyState& state, const PlannerRules& rules) {
  return static_cast<double>(steps_of_long_run(state, rules)) * state.tokens_per_step;
}

std::vector<PairedDifference> final_pairs(const StudyState& state, const PlannerRules& rules) {
  std::vector<LossTable> tables;
  std::vector<std::size_t> schemes;
  for (std::size_t scheme = 0; scheme < state.finals.size(); ++scheme) {
    if (state.finals[scheme].empty()) continue;
    tables.push_back(state.finals[scheme]);
    schemes.push_back(scheme);
  }
  const int look = std::max(1, static_cast<int>(rounds_in(state, Stage::final).size()));
  std::vector<PairedDifference> pairs = compare_pairs(tables, alpha_of_look(rules.alpha, look));
  for (PairedDifference& pair : pairs) {
    pair.a = schemes[pair.a];
    pair.b = schemes[pair.b];
  }
  return pairs;
}

std::optional<Round> next_round(const StudyState& state, double tokens_left, const PlannerRules& rules) {
  NORMA_ASSERT(!state.tuning_seeds.empty());
  std::optional<Round> round;
  if (rounds_in(state, Stage::final).empty()) {
    round = next_race(state, tokens_left, rules);
    if (!round) round = first_final(state, tokens_left, rules);
  }
  if (!round) round = long_round(state, tokens_left, rules);
  if (!round) round = more_seeds(state, tokens_left, rules);
  if (round) round->tokens_left = tokens_left;
  return round;
}

}  // namespace norma
