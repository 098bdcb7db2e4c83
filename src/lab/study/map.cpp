#include "lab/study/map.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/study/meter.h"

namespace norma {

StudyMap::StudyMap(const StudyConfig& config, const StudyRequest& request, StudyObserver& observer,
                   const std::atomic<bool>& stop)
    : config_(config), request_(request), observer_(observer), stop_(stop) {
  std::vector<double> rates = config_.rates;
  std::sort(rates.begin(), rates.end());
  grids_.assign(config_.schemes.size(), rates);
}

SweepConfig StudyMap::sweep(const std::vector<SchemeEvidence>& evidence) const {
  SweepConfig sweep{.base = config_.base};
  for (const SchemeChoice& scheme : config_.schemes) sweep.schemes.put(scheme);
  for (std::size_t i = 0; i < grids_.size(); ++i) {
    if (!evidence[i].leak.empty()) continue;  // whatever it reached would mean nothing
    for (const double rate : grids_[i]) {
      for (const std::int64_t warmup : config_.warmups)
        add_points(sweep, config_.schemes[i], rate, warmup, config_.seeds);
    }
  }
  return sweep;
}

void StudyMap::train(std::vector<SchemeEvidence>& evidence, const MapScale& scale) {
  train_grids(evidence, scale, "map");
  for (int round = 0; round < config_.extra_rates && !stop_ && widen_grids(evidence); ++round)
    train_grids(evidence, scale, "rates beyond");
  if (only_read_ && !stop_)
    run_grids(evidence, scale, "map");  // trains nothing, but sets right what a kill left of the index
}

// A round that has ended is only read: to a sweep of fewer cells a cohort of the next round, cut short by a kill, would
// be one that nobody asks for any more.
void StudyMap::train_grids(std::vector<SchemeEvidence>& evidence, const MapScale& scale, const std::string& part) {
  outcomes_ = read_outcomes(sweep(evidence), directory());
  only_read_ = std::all_of(outcomes_.begin(), outcomes_.end(),
                           [](const RunOutcome& outcome) { return outcome.status != RunStatus::waiting; });
  if (!only_read_) run_grids(evidence, scale, part);
  gather_cells(evidence, outcomes_, config_.rates);
}

void StudyMap::run_grids(const std::vector<SchemeEvidence>& evidence, const MapScale& scale, const std::string& part) {
  const SweepConfig asked = sweep(evidence);
  SweepMeter meter(observer_, part,
                   {.own = static_cast<double>(asked.points.size()) * static_cast<double>(config_.base.train.steps) *
                           scale.tokens_per_step,
                    .all = scale.tokens_of_budget,
                    .counted = scale.counted});
  outcomes_ = run_sweep({.config = asked,
                         .directory = directory(),
                         .command_line = request_.command_line,
                         .weights = config_.budget.unit == StudyBudget::Unit::none ? KeepWeights::yes : KeepWeights::no,
                         .scores = false},
                        meter, stop_)
                  .outcomes;
  if (!stop_) meter.report();
  account_.training_seconds += meter.seconds();
  account_.tokens_trained += meter.tokens();
}

// One more rate for each scheme whose best lies at an end of those tried.
bool StudyMap::widen_grids(const std::vector<SchemeEvidence>& evidence) {
  bool wider = false;
  for (std::size_t i = 0; i < grids_.size(); ++i) {
    const RateEdge edge = evidence[i].faulty() ? RateEdge::none : edge_of_best(evidence[i]);
    const std::optional<double> rate = rate_beyond(grids_[i], edge);
    if (!rate) continue;
    grids_[i].insert(edge == RateEdge::largest ? grids_[i].end() : grids_[i].begin(), *rate);
    observer_.said(
        fmt::format("{}: the best rate is the {} tried; trying {:g}", evidence[i].title, name_of(edge), *rate));
    wider = true;
  }
  return wider;
}

double StudyMap::tokens(double per_step) const {
  return static_cast<double>(outcomes_.size()) * static_cast<double>(config_.base.train.steps) * per_step;
}

StudyAccount StudyMap::account(double seconds, double per_step) const {
  StudyAccount account = account_;
  account.seconds = seconds;
  if (account.tokens_trained == 0) {  // by a process that was killed before it could write this down
    double speed = 1;
    for (const RunOutcome& outcome : outcomes_) speed = std::max(speed, outcome.tokens_per_second);
    account.tokens_trained = tokens(per_step);
    account.training_seconds = account.tokens_trained / speed;
  }
  return account;
}

}  // namespace norma
