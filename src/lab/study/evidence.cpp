#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "lab/study/parts.h"

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
    if (outcome.outcome == Outcome::did_not_learn) ++cell.not_learned;
    losses[{outcome.scheme, outcome.lr, outcome.warmup}].push_back(outcome.loss());
  }
  for (SchemeEvidence& one : evidence) {
    for (TrainedCell& cell : one.cells) {
      const auto known = losses.find({one.scheme, cell.lr, cell.warmup});
      if (known != losses.end()) cell.loss = estimate_of(known->second);
    }
  }
}

void gather_laws(std::vector<SchemeEvidence>& evidence, const Analysis& analysis) {
  for (const Series& series : analysis.series) {
    SchemeEvidence& one = *std::ranges::find(evidence, series.scheme, &SchemeEvidence::scheme);
    DepthLaw law{.exponent = series.exponent};
    if (series.theory && series.theory->exponent && std::isfinite(*series.theory->exponent))
      law.theory = series.theory->exponent;
    law.zero = std::ranges::all_of(series.y, [](const Estimate& y) { return y.low == 0 && y.high == 0; });
    if (analysis.name == "gradient") one.gradient = law;
    if (analysis.name == "amplification") one.amplification = law;
    if (analysis.name == "stream") one.stream = law;
  }
}

std::vector<std::uint64_t> seeds_at_init(const std::vector<std::int64_t>& seeds) {
  constexpr std::size_t kNetworks = 8;
  std::vector<std::uint64_t> all(seeds.begin(), seeds.end());
  for (std::uint64_t next = 1; all.size() < kNetworks; ++next) {
    if (std::ranges::find(all, next) == all.end()) all.push_back(next);
  }
  return all;
}

}  // namespace norma
