#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "lab/study/parts.h"
#include "norma/lab/share.h"

namespace norma {
namespace {

using Setting = std::tuple<std::string, double, std::int64_t>;  // scheme, rate, warmup

TrainedCell& cell_of(SchemeEvidence& evidence, const RunOutcome& outcome) {
  const auto known = std::ranges::find_if(
      evidence.cells, [&](const TrainedCell& one) { return one.lr == outcome.lr && one.warmup == outcome.warmup; });
  if (known != evidence.cells.end()) return *known;
  return evidence.cells.emplace_back(TrainedCell{.lr = outcome.lr, .warmup = outcome.warmup, .loss = {}});
}

// One run below the optimum puts all of a scheme's losses in doubt.
void one_below(std::vector<SchemeEvidence>& evidence, const RunOutcome& outcome) {
  std::ranges::find(evidence, outcome.scheme, &SchemeEvidence::scheme)->below_optimum = outcome.optimum;
}

void add_final(SchemeEvidence& evidence, const StudyState& state, std::size_t scheme, const Round& round,
               const RoundRun& run) {
  if (!evidence.final)
    evidence.final = FinalEvidence{.lr = run.lr,
                                   .warmup = run.warmup,
                                   .steps = round.steps,
                                   .margin = has_margin(state, scheme, {.lr = run.lr, .warmup = run.warmup}),
                                   .falls = raced_lengths(state).size() > 1 && still_falls(state, scheme)};
  ++evidence.final->seeds;
  if (run.diverged) ++evidence.final->diverged;
}

void add_long_run(SchemeEvidence& evidence, const Round& round, const RoundRun& run) {
  const bool first = evidence.long_steps == 0;
  evidence.long_steps = round.steps;
  if (run.learned && (first || evidence.late_loss == 0 || run.loss < evidence.late_loss)) evidence.late_loss = run.loss;
}

// In the unit of the budget and rounded up to two digits.
std::string budget_to_tell(const RoundPlayer& rounds, const StudyConfig& config) {
  const StudyBudget& budget = config.budget;
  const StudyState& state = rounds.state();
  const double needed = tokens_to_tell(state);
  const std::string depth =  // a budget of this depth alone
      config.beside_other_depths ? fmt::format("--layers {} ", config.base.model.layers) : "";
  const double tokens = rounds.tokens_planned() + needed;
  const auto rounded = [](double value) {
    const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
    return std::ceil(value / unit) * unit;
  };
  if (budget.unit == StudyBudget::Unit::steps || budget.unit == StudyBudget::Unit::none)
    return fmt::format("{}--budget {:g}steps", depth, rounded(tokens / state.tokens_per_step));
  const double each = rounds.seconds_per_token();
  if (budget.unit != StudyBudget::Unit::seconds || each == 0)
    return fmt::format("{}--budget {:g}tokens", depth, rounded(tokens));
  const double minutes = rounded((budget.amount + needed * each) / 60);
  return fmt::format("{}--budget {:g}min", depth, minutes);
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
      if (outcome.diverged_at_step <= 1) ++cell.at_once;
      continue;
    }
    if (outcome.faulty()) {
      ++cell.faulty;
      one_below(evidence, outcome);
      continue;
    }
    if (outcome.outcome == Outcome::did_not_learn) ++cell.not_learned;
    losses[{outcome.scheme, outcome.lr, outcome.warmup}].push_back(outcome.loss());
  }
  for (SchemeEvidence& one : evidence) {
    for (TrainedCell& cell : one.cells) {
      const auto known = losses.find({one.scheme, cell.lr, cell.warmup});
      if (known == losses.end()) continue;
      cell.loss = estimate_of(known->second);
      cell.losses = known->second;
    }
  }
}

void gather_rounds(std::vector<SchemeEvidence>& evidence, const RoundPlayer& rounds, const StudyConfig& config) {
  const StudyState& state = rounds.state();
  for (const StagedOutcome& one : rounds.outcomes()) {
    if (one.outcome.faulty()) one_below(evidence, one.outcome);
  }
  const std::vector<PairedDifference> pairs = final_pairs(state);
  for (std::size_t scheme = 0; scheme < evidence.size(); ++scheme) {
    SchemeEvidence& one = evidence[scheme];
    one.training = training_after(state, scheme);
    for (const PlayedRound& played : state.played) {
      for (const RoundRun& run : played.runs) {
        if (run.scheme != scheme) continue;
        if (played.round.stage == Stage::final) add_final(one, state, scheme, played.round, run);
        if (is_long(played.round)) add_long_run(one, played.round, run);
      }
    }
    if (rounds.below_optimum(scheme)) one.below_optimum = rounds.below_optimum(scheme);
    if (one.final && !state.finals[scheme].empty()) {
      one.final->loss = crossed_mean(state.finals[scheme]).interval();
      one.final->batches = std::ssize(state.finals[scheme].front());
      if (!state.right[scheme].empty()) one.final->accuracy = share_of(state.right[scheme]);
    }
    for (const PairedDifference& pair : pairs) {
      if ((pair.a != scheme && pair.b != scheme) || !one.final) continue;
      const std::string& other = evidence[pair.a == scheme ? pair.b : pair.a].title;
      const bool ahead = (pair.a == scheme) == (pair.difference.mean < 0);
      if (!pair.apart) one.final->tied_with.push_back(other);
      if (pair.difference.low == 0 && pair.difference.high == 0) one.final->same_as.push_back(other);
      if (pair.apart && ahead && !is_lasting(state, pair)) one.final->ahead_for_now.push_back(other);
    }
    const std::set<double> at = rates_stuck_long(state, scheme), above = rates_above_guessing_long(state, scheme);
    one.rates_at_guessing.assign(at.begin(), at.end());
    one.rates_above_guessing.assign(above.begin(), above.end());
    if (one.training == Training::unclear && !missing_long_entries(state, scheme).empty())
      one.budget_to_tell = budget_to_tell(rounds, config);
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
