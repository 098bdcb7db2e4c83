#include "lab/study/race.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

struct SettingSum {
  RacedSetting setting;
  int seeds = 0;
};

void add_run(std::vector<SettingSum>& all, const RoundRun& run) {
  auto found = std::ranges::find_if(
      all, [&](const SettingSum& one) { return one.setting.lr == run.lr && one.setting.warmup == run.warmup; });
  if (found == all.end()) found = all.insert(all.end(), {{.lr = run.lr, .warmup = run.warmup, .trains = true}, 0});
  RacedSetting& setting = found->setting;
  setting.loss = (setting.loss * found->seeds + run.loss) / (found->seeds + 1);
  ++found->seeds;
  setting.diverged = setting.diverged || run.diverged;
  setting.trains = setting.trains && run.learned && !run.diverged;
}

std::vector<double> ladder_of(const SchemeEvidence& evidence) {
  std::set<double> rates;
  for (const TrainedCell& cell : evidence.cells) rates.insert(cell.lr);
  return {rates.begin(), rates.end()};
}

std::int64_t largest_warmup(const SchemeEvidence& evidence) {
  std::int64_t most = 0;
  for (const TrainedCell& cell : evidence.cells) most = std::max(most, cell.warmup);
  return most;
}

// The warmup of the map that a run of so many steps with this one stands for.
std::int64_t map_warmup_of(const StudyState& state, std::size_t scheme, std::int64_t warmup, std::int64_t steps,
                           const PlannerRules& rules) {
  for (const TrainedCell& cell : state.schemes[scheme].cells) {
    if (warmup_for(state, scheme, cell.warmup, steps, rules) == warmup) return cell.warmup;
  }
  return warmup;
}

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
  return best_first(settings_in_map(state.schemes[scheme])).empty();
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

std::vector<std::int64_t> raced_lengths(const StudyState& state) {
  std::vector<std::int64_t> lengths = {state.map_steps};
  for (const PlayedRound& played : state.played) {
    if (played.round.stage == Stage::race && played.round.steps > lengths.back()) lengths.push_back(played.round.steps);
  }
  return lengths;
}

std::int64_t raced_steps(const StudyState& state) { return raced_lengths(state).back(); }

std::vector<RacedSetting> settings_at(const StudyState& state, std::size_t scheme, std::int64_t steps) {
  if (steps == state.map_steps) return settings_in_map(state.schemes[scheme]);
  std::vector<SettingSum> sums;
  for (const PlayedRound& played : state.played) {
    if (played.round.stage != Stage::race || played.round.steps != steps) continue;
    for (const RoundRun& run : played.runs) {
      if (run.scheme == scheme) add_run(sums, run);
    }
  }
  std::vector<RacedSetting> all;
  for (const SettingSum& sum : sums) all.push_back(sum.setting);
  return all;
}

std::vector<RacedSetting> best_first(std::vector<RacedSetting> all) {
  std::erase_if(all, [](const RacedSetting& one) { return one.diverged; });
  std::stable_sort(all.begin(), all.end(), [](const RacedSetting& a, const RacedSetting& b) {
    return a.trains != b.trains ? a.trains : a.loss < b.loss;
  });
  return all;
}

double best_loss_at(const StudyState& state, std::size_t scheme, std::int64_t steps) {
  double best = kNoLoss;
  for (const RacedSetting& one : settings_at(state, scheme, steps))
    best = std::min(best, one.trains ? one.loss : kNoLoss);
  return best;
}

bool trains_anywhere(const StudyState& state, std::size_t scheme) {
  return std::ranges::any_of(raced_lengths(state),
                             [&](std::int64_t steps) { return best_loss_at(state, scheme, steps) < kNoLoss; });
}

std::optional<RacedSetting> chosen_setting(const StudyState& state, std::size_t scheme, const PlannerRules& rules) {
  const std::vector<RacedSetting> settings = best_first(settings_at(state, scheme, raced_steps(state)));
  if (settings.empty() || !settings[0].trains) return std::nullopt;
  for (const RacedSetting& one : settings) {
    if (one.trains && one.loss <= settings[0].loss + rules.tied && has_margin(state, scheme, one, rules)) return one;
  }
  return settings[0];
}

bool has_margin(const StudyState& state, std::size_t scheme, const RacedSetting& setting, const PlannerRules& rules) {
  const std::int64_t steps = raced_steps(state);
  const auto next_trains = [&](std::int64_t length, std::int64_t warmup) -> std::optional<bool> {
    std::optional<RacedSetting> next;
    for (const RacedSetting& one : settings_at(state, scheme, length)) {
      if (one.warmup == warmup && one.lr > setting.lr && (!next || one.lr < next->lr)) next = one;
    }
    return next ? std::optional(next->trains) : std::nullopt;
  };
  if (const std::optional<bool> there = next_trains(steps, setting.warmup)) return *there;
  return next_trains(state.map_steps, map_warmup_of(state, scheme, setting.warmup, steps, rules)).value_or(false);
}

std::optional<double> rate_below(const StudyState& state, std::size_t scheme, double lr) {
  std::vector<double> ladder = ladder_of(state.schemes[scheme]);
  while (!ladder.empty() && ladder.front() >= lr) {
    const std::optional<double> below =
        state.beyond_grid ? rate_beyond(ladder, RateEdge::smallest) : std::optional<double>();
    if (!below) return std::nullopt;
    ladder.insert(ladder.begin(), *below);
  }
  return *std::prev(std::ranges::lower_bound(ladder, lr));
}

std::int64_t warmup_for(const StudyState& state, std::size_t scheme, std::int64_t map_warmup, std::int64_t steps,
                        const PlannerRules& rules) {
  const std::int64_t most = largest_warmup(state.schemes[scheme]);
  if (map_warmup == 0 || most == 0 || steps <= state.map_steps) return map_warmup;
  const double share = static_cast<double>(map_warmup) / static_cast<double>(most);
  return std::max(map_warmup, static_cast<std::int64_t>(rules.warmup_share * share * static_cast<double>(steps)));
}

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
  return entries;
}

bool still_falls(const StudyState& state, std::size_t scheme, const PlannerRules& rules) {
  const std::vector<std::int64_t> lengths = raced_lengths(state);
  if (lengths.size() < 2) return true;
  const double now = best_loss_at(state, scheme, lengths.back()),
               before = best_loss_at(state, scheme, lengths[lengths.size() - 2]);
  return now < kNoLoss && now < before - rules.flat;
}

}  // namespace norma
