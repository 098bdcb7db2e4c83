// What the final tells: which schemes it separates, by loss and classifiers by right answers, over all looks at it, and
// which of these differences last.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/study/planner.h"

namespace norma {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<const Round*> finals_of(const StudyState& state) {
  std::vector<const Round*> finals;
  for (const PlayedRound& played : state.played) {
    if (played.round.stage == Stage::final) finals.push_back(&played.round);
  }
  return finals;
}

// The tables as they were after so many finals.
std::vector<LossTable> tables_at(const StudyState& state, std::vector<LossTable> tables,
                                 const std::vector<std::size_t>& schemes, int look) {
  const std::vector<const Round*> finals = finals_of(state);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    std::size_t seeds = 0;
    for (std::size_t round = 0; round < static_cast<std::size_t>(look); ++round) {
      for (const RoundEntry& entry : finals[round]->entries)
        seeds += entry.scheme == schemes[i] ? entry.seeds.size() : 0;
    }
    tables[i].resize(std::min(tables[i].size(), seeds));
  }
  return tables;
}

// All pairs of the schemes that have a table. What was told apart at an earlier look stays so while the data since, at
// the level of that look, do not deny it: looks together spend alpha, and seeds for schemes that are tied take nothing
// from those that are not.
std::vector<PairedDifference> pairs_of(const std::vector<LossTable>& all, const StudyState& state,
                                       const PlannerRules& rules) {
  std::vector<LossTable> tables;
  std::vector<std::size_t> schemes;
  for (std::size_t scheme = 0; scheme < all.size(); ++scheme) {
    if (all[scheme].empty()) continue;
    tables.push_back(all[scheme]);
    schemes.push_back(scheme);
  }
  const int looks = std::max(1, static_cast<int>(finals_of(state).size()));
  std::vector<PairedDifference> pairs = compare_pairs(tables, alpha_of_look(rules.alpha, looks));
  for (int look = 1; look < looks; ++look) {
    const std::vector<PairedDifference> before =
        compare_pairs(tables_at(state, tables, schemes, look), alpha_of_look(rules.alpha, look));
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].apart || !before[i].apart) continue;
      const Estimate now = difference_of(tables[pairs[i].a], tables[pairs[i].b]).interval(before[i].level);
      if (now.low <= 0 && now.high >= 0) continue;
      pairs[i] = before[i];
      pairs[i].difference = now;
    }
  }
  for (PairedDifference& pair : pairs) {
    pair.a = schemes[pair.a];
    pair.b = schemes[pair.b];
  }
  return pairs;
}

}  // namespace

std::vector<PairedDifference> final_pairs(const StudyState& state, const PlannerRules& rules) {
  return pairs_of(state.finals, state, rules);
}

std::vector<PairedDifference> right_pairs(const StudyState& state, const PlannerRules& rules) {
  return pairs_of(state.right, state, rules);
}

std::optional<double> closing_per_doubling(const StudyState& state, std::size_t behind, std::size_t ahead,
                                           const PlannerRules& rules) {
  const std::vector<std::int64_t> lengths = raced_lengths(state);
  const auto doublings_from = [](std::int64_t shorter, std::int64_t longer) {
    return std::log2(static_cast<double>(longer) / static_cast<double>(shorter));
  };
  if (doublings_from(lengths.front(), lengths.back()) < rules.least_doublings) return std::nullopt;
  double most = 0;
  for (std::size_t back = 1; back <= 2 && back < lengths.size(); ++back) {
    const std::int64_t longer = lengths[lengths.size() - back], shorter = lengths[lengths.size() - back - 1];
    const auto fall_of = [&](std::size_t scheme) {
      const double now = best_loss_at(state, scheme, longer), before = best_loss_at(state, scheme, shorter);
      return now == kNever ? -kNever : (before - now) / doublings_from(shorter, longer);
    };
    const double of_behind = fall_of(behind), of_ahead = fall_of(ahead);
    if (of_behind == -kNever || of_ahead == -kNever) return std::nullopt;
    if (of_behind == kNever) return kNever;
    most = std::max({most, rules.least_closing * of_behind, of_behind - of_ahead});
  }
  return most;
}

bool is_lasting(const StudyState& state, const PairedDifference& pair, const PlannerRules& rules) {
  if (!pair.apart) return false;
  const bool first_is_behind = pair.difference.mean > 0;  // a loses more than b
  const std::size_t behind = first_is_behind ? pair.a : pair.b, ahead = first_is_behind ? pair.b : pair.a;
  const std::optional<double> closing = closing_per_doubling(state, behind, ahead, rules);
  if (!closing) return false;
  const double lead = std::min(std::abs(pair.difference.low), std::abs(pair.difference.high));
  if (!(lead > *closing * std::log2(rules.more_training))) return false;
  // One that has hardly begun may not have shown its pace.
  if (!state.guessing || raced_steps(state) >= rules.long_steps) return true;
  const double learned_behind = *state.guessing - crossed_mean(state.finals[behind]).mean;
  const double learned_ahead = *state.guessing - crossed_mean(state.finals[ahead]).mean;
  return learned_behind >= 0.5 * learned_ahead;
}

}  // namespace norma
