// Schemes of the final in pairs: by loss, and classifiers by right answers.
#include <algorithm>

#include "lab/study/planner.h"

namespace norma {
namespace {

// All pairs of the schemes that have a table, at the level of the last look.
std::vector<PairedDifference> pairs_of(const std::vector<LossTable>& all, const StudyState& state,
                                       const PlannerRules& rules) {
  std::vector<LossTable> tables;
  std::vector<std::size_t> schemes;
  for (std::size_t scheme = 0; scheme < all.size(); ++scheme) {
    if (all[scheme].empty()) continue;
    tables.push_back(all[scheme]);
    schemes.push_back(scheme);
  }
  const auto finals =
      std::ranges::count_if(state.played, [](const PlayedRound& played) { return played.round.stage == Stage::final; });
  const int look = std::max(1, static_cast<int>(finals));
  std::vector<PairedDifference> pairs = compare_pairs(tables, alpha_of_look(rules.alpha, look));
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

}  // namespace norma
