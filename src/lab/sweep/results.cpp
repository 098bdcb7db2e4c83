#include "norma/lab/sweep_results.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "lab/limits.h"
#include "lab/sweep/parts.h"
#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::size_t kEvaluationsOfACurve = 4;  // fewer do not tell when a loss was reached

// Of each loss and the two before it, so that a single lucky batch does not count; infinite for the first two.
std::vector<double> running_median(const std::vector<double>& losses) {
  std::vector<double> medians(losses.size(), kInfinity);
  for (std::size_t i = 2; i < losses.size(); ++i) {
    const double a = losses[i - 2], b = losses[i - 1];
    medians[i] = std::max(std::min(a, b), std::min(std::max(a, b), losses[i]));
  }
  return medians;
}

std::optional<double> first_below(const std::vector<std::int64_t>& steps, const std::vector<double>& losses,
                                  double target) {
  const auto found = std::find_if(losses.begin(), losses.end(), [&](double loss) { return loss <= target; });
  if (found == losses.end()) return std::nullopt;
  return static_cast<double>(steps[static_cast<std::size_t>(found - losses.begin())]);
}

// What an axis other than scheme, depth, rate, warmup and seeds says of a run: "width=64".
std::string rest_of(const RunOutcome& run) {
  static const std::set<std::string> known = {"model.scheme", "model.layers",    "train.lr",      "train.warmup",
                                              "train.seed",   "train.data_seed", "train.schedule"};
  std::string text;
  for (const auto& [key, value] : run.axes) {
    if (known.contains(key)) continue;
    std::string plain = value;
    std::erase(plain, '"');
    text += (text.empty() ? "" : ", ") + key.substr(key.rfind('.') + 1) + "=" + plain;
  }
  return text;
}

bool has_ended(const RunOutcome& run) { return run.status != RunStatus::waiting && run.status != RunStatus::running; }

bool any_diverged(const Outcomes& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const RunOutcome& run) { return run.diverged(); });
}

double best_setting_loss(const Outcomes& runs) {
  double best = kInfinity;
  for (const auto& [lr, part] : by_lr(runs)) best = std::min(best, setting_loss(part));
  return best;
}

struct Climb {
  std::optional<double> lr;
  bool beyond = false;
};

Climb climb(const Outcomes& runs) {
  Climb reached;
  bool learned = false;  // at a smaller rate: a rate too small to learn anything is no instability
  for (const auto& [lr, part] : by_lr(runs)) {
    const bool nothing =
        std::any_of(part.begin(), part.end(), [](const RunOutcome& run) { return run.learned_nothing(); });
    if (any_diverged(part) || (learned && nothing)) return reached;
    learned = learned || !nothing;
    reached.lr = lr;
  }
  reached.beyond = reached.lr.has_value();
  return reached;
}

StabilityMap make_map(const Outcomes& runs, const std::string& y_name,
                      const std::function<std::int64_t(const RunOutcome&)>& y_of) {
  StabilityMap map;
  map.y_name = y_name;
  std::set<double> rates;
  for (const RunOutcome& run : runs) rates.insert(run.lr);
  map.lr.assign(rates.begin(), rates.end());
  for (const auto& [y, row] : by<std::int64_t>(runs, y_of)) {
    map.y.push_back(static_cast<double>(y));
    map.loss.emplace_back();
    map.diverged.emplace_back();
    const std::map<double, Outcomes> cells = by_lr(row);
    for (const double lr : map.lr) {
      const auto found = cells.find(lr);
      map.loss.back().push_back(found == cells.end() ? Estimate{kNaN, kNaN, kNaN, 0} : loss_over_seeds(found->second));
      double diverged = kNaN;
      if (found != cells.end()) {
        const auto count = std::count_if(found->second.begin(), found->second.end(),
                                         [](const RunOutcome& run) { return run.diverged(); });
        diverged = static_cast<double>(count) / static_cast<double>(found->second.size());
      }
      map.diverged.back().push_back(diverged);
    }
  }
  return map;
}

bool worth_showing(const StabilityMap& map) { return map.lr.size() * map.y.size() > 1; }

}  // namespace

std::string Contest::name() const {
  return fmt::format("{}, {} layer{}{}{}", scheme, layers, layers == 1 ? "" : "s", rest.empty() ? "" : ", ", rest);
}

std::vector<Contest> contests(const Outcomes& outcomes) {
  std::vector<Contest> all;
  for (const RunOutcome& run : outcomes) {
    if (!has_ended(run) || run.schedule == "ramp") continue;
    const std::string rest = rest_of(run);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Contest& one) {
      return one.scheme == run.scheme && one.layers == run.layers && one.rest == rest;
    });
    if (found == all.end()) {
      all.push_back({run.scheme, run.layers, rest, {run}});
    } else {
      found->runs.push_back(run);
    }
  }
  return all;
}

std::vector<std::string> fault_notes(const Outcomes& outcomes) {
  std::vector<std::string> notes;
  for (const Contest& contest : contests(outcomes)) {
    const auto count = [&](Outcome outcome) { return std::ranges::count(contest.runs, outcome, &RunOutcome::outcome); };
    if (count(Outcome::leaks) > 0)
      notes.push_back(
          fmt::format("{} leaks: a later token changes an earlier logit, so its losses mean nothing and are in no "
                      "comparison.",
                      contest.name()));
    if (const auto runs = count(Outcome::below_optimum); runs > 0)
      notes.push_back(fmt::format(
          "{}: {} of {} runs ended below the optimum of the task, which no model can: an error of the setting. They "
          "are in no comparison.",
          contest.name(), runs, contest.runs.size()));
  }
  return notes;
}

Estimate loss_over_seeds(const Outcomes& runs) {
  std::vector<double> losses;
  for (const RunOutcome& run : runs) {
    if (std::isfinite(run.loss())) losses.push_back(run.loss());
  }
  return losses.empty() ? Estimate{kNaN, kNaN, kNaN, 0} : estimate_of(losses);
}

std::vector<StabilityMap> stability_maps(const Outcomes& outcomes) {
  std::vector<StabilityMap> maps;
  const std::vector<Contest> all = contests(outcomes);
  for (const Contest& contest : all) {
    StabilityMap map = make_map(contest.runs, "warmup", [](const RunOutcome& run) { return run.warmup; });
    map.scheme = contest.scheme;
    map.layers = contest.layers;
    map.rest = contest.rest;
    if (worth_showing(map)) maps.push_back(std::move(map));
  }
  std::vector<std::pair<std::string, std::string>> done;  // scheme and rest
  for (const Contest& contest : all) {
    if (std::find(done.begin(), done.end(), std::pair(contest.scheme, contest.rest)) != done.end()) continue;
    done.emplace_back(contest.scheme, contest.rest);
    Outcomes runs;
    std::set<std::int64_t> depths;
    for (const Contest& other : all) {
      if (other.scheme != contest.scheme || other.rest != contest.rest) continue;
      runs.insert(runs.end(), other.runs.begin(), other.runs.end());
      depths.insert(other.layers);
    }
    if (depths.size() < 2) continue;
    for (const auto& [warmup, part] : by_warmup(runs)) {
      StabilityMap map = make_map(part, "layers", [](const RunOutcome& run) { return run.layers; });
      map.scheme = contest.scheme;
      map.warmup = warmup;
      map.rest = contest.rest;
      maps.push_back(std::move(map));
    }
  }
  return maps;
}

std::optional<Estimate> sensitivity(const Outcomes& runs, const std::vector<double>& rates) {
  const auto counts = [&](const RunOutcome& run) {
    return rates.empty() || std::find(rates.begin(), rates.end(), run.lr) != rates.end();
  };
  Outcomes counted;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(counted), counts);
  const std::size_t tried = by_lr(runs).size();
  if (by_lr(counted).size() < 2) return std::nullopt;
  std::vector<double> values;
  for (const auto& [seed, part] : by_seed(runs)) {
    double best = kInfinity, start = -kInfinity;
    bool cut_short = false;  // a run stopped early says nothing about its loss at the end
    for (const RunOutcome& run : part) {
      cut_short = cut_short || run.status == RunStatus::stopped;
      best = std::min(best, run.loss());
      if (std::isfinite(run.initial_loss())) start = std::max(start, run.initial_loss());
    }
    if (by_lr(part).size() != tried || !std::isfinite(best) || cut_short) continue;
    double sum = 0, terms = 0;
    for (const RunOutcome& run : part) {
      if (!counts(run)) continue;
      sum += (start > best ? std::min(run.loss(), start) : run.loss()) - best;
      ++terms;
    }
    if (std::isfinite(sum)) values.push_back(sum / terms);
  }
  if (values.empty()) return std::nullopt;
  return estimate_of(values);
}

StableRate largest_stable_lr(const Outcomes& runs) {
  StableRate rate;
  const Climb all = climb(runs);
  rate.lr = all.lr;
  rate.beyond = all.beyond;
  for (const auto& [seed, part] : by_seed(runs)) {
    const double reached = climb(part).lr.value_or(0);
    rate.low = std::min(rate.low.value_or(reached), reached);
    rate.high = std::max(rate.high.value_or(reached), reached);
  }
  return rate;
}

double ramp_limit(const RunOutcome& run, double calm) {
  if (!run.diverged()) return run.lr;
  double smallest = kInfinity;
  std::int64_t step = 0;  // last calm one
  bool calm_at_end = true;
  for (std::size_t i = 0; i < run.curve.step.size() && run.curve.step[i] < run.diverged_at_step; ++i) {
    const double loss = run.curve.loss[i];
    calm_at_end = loss <= smallest + calm || smallest == kInfinity;
    if (calm_at_end) step = run.curve.step[i];
    smallest = std::min(smallest, loss);
  }
  // Between records nothing is known; a run that was calm at the last one is taken as calm until the step before.
  if (calm_at_end) step = run.diverged_at_step - 1;
  return run.lr * static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, run.steps));
}

std::vector<RampLimit> ramp_limits(const Outcomes& outcomes, double calm) {
  std::vector<RampLimit> limits;
  std::vector<std::vector<double>> rates;
  for (const RunOutcome& run : outcomes) {
    if (run.schedule != "ramp" || (run.status != RunStatus::finished && !run.diverged())) continue;
    const std::string rest = rest_of(run);
    auto found = std::find_if(limits.begin(), limits.end(), [&](const RampLimit& one) {
      return one.scheme == run.scheme && one.layers == run.layers && one.rest == rest;
    });
    if (found == limits.end()) {
      limits.push_back({.scheme = run.scheme, .layers = run.layers, .rest = rest, .lr = {}, .beyond = false});
      rates.emplace_back();
      found = limits.end() - 1;
    }
    found->beyond = found->beyond || !run.diverged();
    rates[static_cast<std::size_t>(found - limits.begin())].push_back(ramp_limit(run, calm));
  }
  for (std::size_t i = 0; i < limits.size(); ++i) limits[i].lr = estimate_of(rates[i]);
  return limits;
}

std::optional<std::int64_t> warmup_need(const Outcomes& runs, double tolerance) {
  const double best = [&] {
    double least = kInfinity;
    for (const auto& [warmup, part] : by_warmup(runs)) least = std::min(least, best_setting_loss(part));
    return least;
  }();
  if (!std::isfinite(best)) return std::nullopt;
  for (const auto& [warmup, part] : by_warmup(runs)) {
    if (best_setting_loss(part) <= best + tolerance) return warmup;
  }
  return std::nullopt;
}

StepsToTarget steps_to_target(const Outcomes& runs, double target) {
  StepsToTarget reached{.steps = {kNaN, kNaN, kNaN, 0}, .seeds = static_cast<int>(runs.size())};
  std::vector<double> steps;
  for (const RunOutcome& run : runs) {
    const std::vector<double> smooth = running_median(run.curve.loss);
    const std::optional<double> held_out = first_below(run.evaluations.step, run.evaluations.loss, target);
    const std::optional<double> trained = first_below(run.curve.step, smooth, target);
    const bool few = run.evaluations.step.size() < kEvaluationsOfACurve;
    if (const auto step = few && trained ? trained : held_out) steps.push_back(*step);
  }
  if (!steps.empty()) reached.steps = estimate_of(steps);
  return reached;
}

}  // namespace norma
