// The best setting of every scheme, and what depth brings it.
#include <algorithm>
#include <cmath>

#include "lab/limits.h"
#include "lab/sweep/parts.h"
#include "norma/lab/share.h"
#include "norma/lab/sweep_results.h"

namespace norma {
namespace {

// The best of several warmups.
StableRate best_stable(const Outcomes& runs) {
  StableRate best;
  for (const auto& [warmup, part] : by_warmup(runs)) {
    const StableRate one = largest_stable_lr(part);
    if (!best.high || one.lr.value_or(-1) > best.lr.value_or(-1) ||
        (one.lr == best.lr && one.low.value_or(-1) > best.low.value_or(-1)))
      best = one;
  }
  return best;
}

bool learned_something(const Outcomes& runs) {
  return std::ranges::any_of(runs, [](const RunOutcome& run) {
    return run.status == RunStatus::finished && !run.learned_nothing() && !run.faulty();
  });
}

double target_for(const std::vector<Tuned>& all) {
  double target = kNaN;
  for (const Tuned& one : all) {
    if (!learned_something(one.best)) continue;
    for (const RunOutcome& run : one.best) {
      const double best = run.best_evaluation_loss.value_or(run.loss());
      if (std::isfinite(best) && !(best <= target)) target = best;
    }
  }
  return target;
}

Tuned tune(const Contest& contest, const std::vector<double>& sensitivity_rates) {
  Tuned one;
  one.scheme = contest.scheme;
  one.layers = contest.layers;
  one.rest = contest.rest;
  one.loss = {kNaN, kNaN, kNaN, 0};
  double best = kInfinity;
  for (const auto& [warmup, row] : by_warmup(contest.runs)) {
    for (const auto& [lr, cell] : by_lr(row)) {
      const double loss = setting_loss(cell);
      if (!(loss < best)) continue;
      best = loss;
      one.lr = lr;
      one.warmup = warmup;
      one.best = cell;
    }
  }
  if (one.lr) one.loss = loss_over_seeds(one.best);
  if (one.lr) one.accuracy = mean_accuracy(one.best);
  one.diverged = static_cast<double>(std::count_if(contest.runs.begin(), contest.runs.end(),
                                                   [](const RunOutcome& run) { return run.diverged(); })) /
                 static_cast<double>(contest.runs.size());
  // A scheme that learns nothing anywhere is not robust: there is no rate to speak of.
  if (!learned_something(contest.runs)) return one;
  if (one.lr) {
    one.sensitivity = sensitivity(by_warmup(contest.runs).at(one.warmup), sensitivity_rates);
  }
  Outcomes with, without;
  for (const RunOutcome& run : contest.runs) (run.warmup > 0 ? with : without).push_back(run);
  one.with_warmup = best_stable(with);
  one.without_warmup = best_stable(without);
  one.needs_warmup = warmup_need(contest.runs);
  return one;
}

// Slope of y on x by least squares.
double slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return xy / xx;
}

std::optional<Estimate> gain_per_doubling(const std::vector<const Tuned*>& depths) {
  std::map<std::int64_t, std::pair<std::vector<double>, std::vector<double>>> curves;  // by seed
  for (const Tuned* one : depths) {
    for (const RunOutcome& run : one->best) {
      curves[run.seed].first.push_back(std::log2(static_cast<double>(one->layers)));
      curves[run.seed].second.push_back(run.loss());
    }
  }
  std::vector<double> gains;
  for (const auto& [seed, curve] : curves) {
    if (curve.first.size() == depths.size()) gains.push_back(-slope(curve.first, curve.second));
  }
  if (depths.size() < 2 || gains.empty()) return std::nullopt;
  return estimate_of(gains);
}

}  // namespace

std::optional<Estimate> mean_accuracy(const Outcomes& runs) {
  std::vector<RightShare> shares;
  for (const RunOutcome& run : runs) {
    if (run.status == RunStatus::finished && run.accuracy) shares.push_back(*run.accuracy);
  }
  return mean_share(shares);
}

std::vector<Tuned> tuned(const Outcomes& outcomes, std::optional<double> target,
                         const std::vector<double>& sensitivity_rates) {
  std::vector<Tuned> all;
  for (const Contest& contest : contests(outcomes)) all.push_back(tune(contest, sensitivity_rates));
  const double goal = target.value_or(target_for(all));
  for (Tuned& one : all) {
    one.target = goal;
    one.steps_to_target = steps_to_target(one.best, goal);
  }
  return all;
}

std::vector<DepthEfficiency> depth_efficiency(const std::vector<Tuned>& tuned, double tolerance) {
  std::vector<DepthEfficiency> all;
  for (const Tuned& first : tuned) {
    if (std::any_of(all.begin(), all.end(),
                    [&](const DepthEfficiency& one) { return one.scheme == first.scheme && one.rest == first.rest; }))
      continue;
    std::vector<const Tuned*> depths;
    std::int64_t deepest = 0;
    for (const Tuned& other : tuned) {
      if (other.scheme != first.scheme || other.rest != first.rest) continue;
      deepest = std::max(deepest, other.layers);
      if (other.lr) depths.push_back(&other);
    }
    std::sort(depths.begin(), depths.end(), [](const Tuned* a, const Tuned* b) { return a->layers < b->layers; });
    if (depths.size() < 2) continue;
    DepthEfficiency one;
    one.scheme = first.scheme;
    one.rest = first.rest;
    double best = kInfinity;
    for (const Tuned* depth : depths) {
      one.layers.push_back(depth->layers);
      one.loss.push_back(depth->loss);
      best = std::min(best, depth->loss.mean);
    }
    one.gain_per_doubling = gain_per_doubling(depths);
    for (const Tuned* depth : depths) {
      if (one.useful_layers == 0 && depth->loss.mean <= best + tolerance) one.useful_layers = depth->layers;
    }
    one.useful_share = static_cast<double>(one.useful_layers) / static_cast<double>(deepest);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace norma
