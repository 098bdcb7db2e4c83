#include <algorithm>
#include <map>
#include <tuple>

#include "lab/study_parts.h"

namespace norma {
namespace {

using Setting = std::tuple<std::string, double, std::int64_t>;  // scheme, rate, warmup

TrainedCell& cell_of(SchemeEvidence& evidence, const RunOutcome& outcome) {
  const auto known = std::ranges::find_if(
      evidence.cells, [&](const TrainedCell& one) { return one.lr == outcome.lr && one.warmup == outcome.warmup; });
  if (known != evidence.cells.end()) return *known;
  return evidence.cells.emplace_back(TrainedCell{.lr = outcome.lr, .warmup = outcome.warmup, .loss = {}});
}

}  // namespace

void gather_cells(std::vector<SchemeEvidence>& evidence, const std::vector<RunOutcome>& outcomes,
                  const std::vector<double>& shared_rates) {
  std::map<Setting, std::vector<double>> losses;
  for (SchemeEvidence& one : evidence) one.cells.clear();
  for (const RunOutcome& outcome : outcomes) {
    if (outcome.status == RunStatus::waiting || outcome.status == RunStatus::running) continue;
    TrainedCell& cell = cell_of(*std::ranges::find(evidence, outcome.scheme, &SchemeEvidence::scheme), outcome);
    cell.extra = std::ranges::find(shared_rates, outcome.lr) == shared_rates.end();
    ++cell.runs;
    if (outcome.diverged()) {
      ++cell.diverged;
      continue;
    }
    if (outcome.verdict == "did not learn") ++cell.not_learned;
    losses[{outcome.scheme, outcome.lr, outcome.warmup}].push_back(outcome.loss());
  }
  for (SchemeEvidence& one : evidence) {
    for (TrainedCell& cell : one.cells) {
      const auto known = losses.find({one.scheme, cell.lr, cell.warmup});
      if (known != losses.end()) cell.loss = estimate_of(known->second);
    }
  }
}

}  // namespace norma
