#include "lab/study/race.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "norma/core/error.h"

namespace norma {
namespace {

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

}  // namespace

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

std::int64_t map_warmup_of(const StudyState& state, std::size_t scheme, std::int64_t warmup, std::int64_t steps,
                           const PlannerRules& rules) {
  for (const TrainedCell& cell : state.schemes[scheme].cells) {
    if (warmup_for(state, scheme, cell.warmup, steps, rules) == warmup) return cell.warmup;
  }
  return warmup;
}

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

bool still_falls(const StudyState& state, std::size_t scheme, const PlannerRules& rules) {
  const std::vector<std::int64_t> lengths = raced_lengths(state);
  if (lengths.size() < 2) return true;
  const double now = best_loss_at(state, scheme, lengths.back()),
               before = best_loss_at(state, scheme, lengths[lengths.size() - 2]);
  return now < kNoLoss && now < before - rules.flat;
}

}  // namespace norma
