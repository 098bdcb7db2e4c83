// Which settings run on: of schemes that train the best and smaller rates, of those that do not yet small rates first.
#include <algorithm>
#include <cmath>
#include <set>

#include "lab/study/race.h"
#include "norma/core/error.h"

namespace norma {
namespace {

// The rates of the map at which no seed diverged with the largest warmup, ascending.
std::vector<double> calm_rates(const SchemeEvidence& evidence) {
  const std::int64_t warmup = largest_warmup(evidence);
  std::set<double> calm;
  for (const TrainedCell& cell : evidence.cells) {
    if (cell.warmup == warmup && cell.diverged == 0 && cell.faulty == 0) calm.insert(cell.lr);
  }
  return {calm.begin(), calm.end()};
}

// The smallest of these; where there is none, the smallest of all.
double calmest_rate(const SchemeEvidence& evidence) {
  const std::vector<double> calm = calm_rates(evidence);
  return calm.empty() ? ladder_of(evidence).front() : calm.front();
}

std::optional<double> rate_above(const SchemeEvidence& evidence, double lr) {
  for (const double rate : ladder_of(evidence)) {
    if (rate > lr) return rate;
  }
  return std::nullopt;
}

bool diverges_everywhere(const StudyState& state, std::size_t scheme) {
  return best_first(settings_at(state, scheme, state.map_steps)).empty();
}

class EntryList {
 public:
  EntryList(const StudyState& state, std::size_t scheme, std::size_t most)
      : state_(state), scheme_(scheme), most_(most) {}
  void add(std::optional<double> lr, std::int64_t warmup) {
    if (!lr || entries_.size() >= most_) return;
    const bool known =
        std::ranges::any_of(entries_, [&](const RoundEntry& one) { return one.lr == *lr && one.warmup == warmup; });
    if (!known) entries_.push_back({scheme_, *lr, warmup, state_.tuning_seeds});
  }
  const std::vector<RoundEntry>& entries() const { return entries_; }

 private:
  const StudyState& state_;
  std::size_t scheme_, most_;
  std::vector<RoundEntry> entries_;
};

// In the map a larger rate came nearer to guessing level: what is above that level for any other reason than a small
// rate, such as one that is too large, says nothing about small ones.
bool is_too_small(const StudyState& state, std::size_t scheme, double lr, const PlannerRules& rules) {
  const std::vector<RacedSetting> settings = settings_at(state, scheme, state.map_steps);
  return std::ranges::any_of(settings, [&](const RacedSetting& one) {
    return one.lr == lr && !one.diverged && std::ranges::any_of(settings, [&](const RacedSetting& other) {
             return other.lr > lr && other.warmup == one.warmup && !other.diverged &&
                    other.loss < one.loss - rules.tied;
           });
  });
}

// The most that rate times steps came to in a run which ended above guessing level because its rate was too small.
double way_above_guessing(const StudyState& state, std::size_t scheme, const PlannerRules& rules) {
  if (!state.guessing) return 0;
  double most = 0;
  const auto add = [&](double lr, std::int64_t steps) {
    if (is_too_small(state, scheme, lr, rules)) most = std::max(most, lr * static_cast<double>(steps));
  };
  for (const RacedSetting& one : settings_at(state, scheme, state.map_steps)) {
    if (!one.diverged && one.loss < kNoLoss && one.loss > *state.guessing + rules.tied) add(one.lr, state.map_steps);
  }
  for (const PlayedRound& played : state.played) {
    for (const RoundRun& run : played.runs)
      if (run.scheme == scheme && !run.diverged && !run.learned && !run.guesses) add(run.lr, played.round.steps);
  }
  return most;
}

// Nothing of it trains yet: a small rate and the next one, with warmup.
std::vector<RoundEntry> waiting_entries(const StudyState& state, std::size_t scheme, std::int64_t steps,
                                        const PlannerRules& rules) {
  const SchemeEvidence& evidence = state.schemes[scheme];
  if (diverges_everywhere(state, scheme)) return {};
  EntryList list(state, scheme, static_cast<std::size_t>(rules.unclear_settings));
  const std::int64_t warmup = warmup_for(state, scheme, largest_warmup(evidence), steps, rules);
  const double calmest = calmest_rate(evidence);
  list.add(calmest, warmup);
  list.add(rate_above(evidence, calmest), warmup);
  list.add(calmest, 0);
  return list.entries();
}

// It trained, but not at the last length: smaller rates.
std::vector<RoundEntry> calmer_entries(const StudyState& state, std::size_t scheme, std::int64_t steps,
                                       const PlannerRules& rules) {
  double smallest = kNoLoss;
  for (const RacedSetting& one : settings_at(state, scheme, raced_steps(state))) smallest = std::min(smallest, one.lr);
  EntryList list(state, scheme, static_cast<std::size_t>(rules.later_settings));
  const std::int64_t warmup = warmup_for(state, scheme, largest_warmup(state.schemes[scheme]), steps, rules);
  const std::optional<double> below = rate_below(state, scheme, smallest);
  list.add(below, warmup);
  if (below) list.add(rate_below(state, scheme, *below), warmup);
  if (list.entries().empty()) list.add(smallest, warmup);
  return list.entries();
}

}  // namespace

std::vector<RoundEntry> racing_entries(const StudyState& state, std::int64_t steps, const PlannerRules& rules) {
  const std::int64_t before = raced_steps(state);
  const int most = before == state.map_steps ? rules.first_settings : rules.later_settings;
  std::vector<RoundEntry> entries;
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme) {
    std::vector<RoundEntry> of_scheme;
    if (const std::optional<RacedSetting> best = chosen_setting(state, scheme, rules)) {
      const auto longer = [&](const RacedSetting& one) {
        return warmup_for(state, scheme, map_warmup_of(state, scheme, one.warmup, before, rules), steps, rules);
      };
      EntryList list(state, scheme, static_cast<std::size_t>(most));
      list.add(best->lr, longer(*best));
      list.add(rate_below(state, scheme, best->lr), longer(*best));  // longer runs like smaller rates
      for (const RacedSetting& one : best_first(settings_at(state, scheme, before))) list.add(one.lr, longer(one));
      of_scheme = list.entries();
    } else if (trains_anywhere(state, scheme)) {
      of_scheme = calmer_entries(state, scheme, steps, rules);
    } else if (!state.schemes[scheme].cells.empty()) {
      of_scheme = waiting_entries(state, scheme, steps, rules);
    }
    entries.insert(entries.end(), of_scheme.begin(), of_scheme.end());
  }
  return entries;
}

std::vector<RoundEntry> edge_entries(const StudyState& state) {
  const std::int64_t steps = raced_steps(state);
  std::vector<RoundEntry> entries;
  if (steps == state.map_steps) return entries;  // the map has looked beyond its own edges
  for (std::size_t scheme = 0; scheme < state.schemes.size(); ++scheme) {
    const std::vector<RacedSetting> tried = settings_at(state, scheme, steps);
    if (tried.empty() || !trains_anywhere(state, scheme)) continue;
    const RacedSetting smallest = *std::ranges::min_element(tried, {}, &RacedSetting::lr);
    const std::vector<RacedSetting> best = best_first(tried);
    const bool trains = !best.empty() && best[0].trains;
    if (trains && best[0].lr > smallest.lr) continue;
    EntryList list(state, scheme, 1);
    list.add(rate_below(state, scheme, smallest.lr), trains ? best[0].warmup : smallest.warmup);
    entries.insert(entries.end(), list.entries().begin(), list.entries().end());
  }
  return entries;
}

std::vector<RoundEntry> long_entries(const StudyState& state, std::size_t scheme, std::int64_t steps,
                                     const PlannerRules& rules) {
  const SchemeEvidence& evidence = state.schemes[scheme];
  if (evidence.cells.empty() || diverges_everywhere(state, scheme)) return {};
  const std::int64_t warmup = warmup_for(state, scheme, largest_warmup(evidence), steps, rules);
  const double calmest = calmest_rate(evidence);
  EntryList list(state, scheme, static_cast<std::size_t>(rules.most_long_rates));
  list.add(calmest, warmup);
  list.add(rate_below(state, scheme, calmest), warmup);
  for (const double rate : calm_rates(evidence)) list.add(rate, warmup);
  std::vector<RoundEntry> entries = list.entries();
  for (RoundEntry& entry : entries) entry.seeds = {state.tuning_seeds[0]};
  // One that will come no further than a run which told nothing will tell nothing either.
  const double nowhere = (1 + 1e-9) * way_above_guessing(state, scheme, rules);
  std::ranges::stable_partition(
      entries, [&](const RoundEntry& entry) { return entry.lr * static_cast<double>(steps) > nowhere; });
  return entries;
}

}  // namespace norma
