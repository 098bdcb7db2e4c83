// The results of a sweep as docs/results.md writes them.
#include <fmt/chrono.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "lab/json_parts.h"
#include "norma/lab/sweep_results.h"
#include "norma/version.h"

namespace norma {
namespace {

using nlohmann::ordered_json;

template <typename T, typename Write>
ordered_json optional(const std::optional<T>& value, Write write) {
  return value ? ordered_json(write(*value)) : ordered_json();
}

ordered_json curve(const LossCurve& c) { return {{"step", c.step}, {"loss", json_numbers(c.loss)}}; }

ordered_json run_json(const RunOutcome& run) {
  ordered_json one = {
      {"id", run.id},
      {"scheme", run.scheme},
      {"layers", run.layers},
      {"width", run.width},
      {"lr", json_number(run.lr)},
      {"warmup", run.warmup},
      {"seed", run.seed},
      {"status", name_of(run.status)},
      {"axes", run.axes},
      {"diverged", run.diverged()},
      {"diverged_at_step", run.diverged() ? ordered_json(run.diverged_at_step) : ordered_json()},
      {"diverged_because", run.diverged() ? ordered_json(run.diverged_because) : ordered_json()},
      {"first_bad_wire", run.first_bad_wire.empty() ? ordered_json() : ordered_json(run.first_bad_wire)},
      {"stopped_at_step", run.stopped_at_step > 0 ? ordered_json(run.stopped_at_step) : ordered_json()},
      {"final_loss", json_number(run.final_loss)},
      {"best_loss", json_number(run.best_loss)},
      {"evaluation_loss", optional(run.evaluation_loss, json_number)},
      {"tokens_per_second", json_number(run.tokens_per_second)},
      {"verdict", run.verdict}};
  one["curve"] = curve(run.curve);
  one["evaluations"] = curve(run.evaluations);
  return one;
}

ordered_json map_json(const StabilityMap& map) {
  ordered_json one = {{"scheme", map.scheme},
                      {"layers", map.y_name == "layers" ? ordered_json() : ordered_json(map.layers)},
                      {"rest", map.rest},
                      {"x", {{"name", "lr"}, {"values", json_numbers(map.lr)}}},
                      {"y", {{"name", map.y_name}, {"values", json_numbers(map.y)}}},
                      {"loss", ordered_json::array()},
                      {"diverged", ordered_json::array()}};
  if (map.y_name == "layers") one["warmup"] = map.warmup;
  for (const std::vector<Estimate>& row : map.loss) {
    ordered_json cells = ordered_json::array();
    for (const Estimate& cell : row) cells.push_back(estimate(cell));
    one["loss"].push_back(std::move(cells));
  }
  for (const std::vector<double>& row : map.diverged) one["diverged"].push_back(json_numbers(row));
  return one;
}

ordered_json rate_json(const StableRate& rate) {
  return {{"lr", optional(rate.lr, json_number)},
          {"low", optional(rate.low, json_number)},
          {"high", optional(rate.high, json_number)},
          {"beyond", rate.beyond}};
}

ordered_json tuned_json(const Tuned& one) {
  return {{"scheme", one.scheme},
          {"layers", one.layers},
          {"rest", one.rest},
          {"lr", optional(one.lr, json_number)},
          {"warmup", one.warmup},
          {"loss", estimate(one.loss)},
          {"sensitivity", one.sensitivity ? json_number(one.sensitivity->mean) : ordered_json()},
          {"sensitivity_estimate", optional(one.sensitivity, estimate)},
          {"largest_stable_lr", optional(one.with_warmup.lr, json_number)},
          {"largest_stable_lr_without_warmup", optional(one.without_warmup.lr, json_number)},
          {"stable_lr", rate_json(one.with_warmup)},
          {"stable_lr_without_warmup", rate_json(one.without_warmup)},
          {"needs_warmup", optional(one.needs_warmup, [](std::int64_t steps) { return ordered_json(steps); })},
          {"diverged", json_number(one.diverged)},
          {"steps_to_target", estimate(one.steps_to_target.steps)},
          {"target", json_number(one.target)}};
}

ordered_json ramp_json(const RampLimit& one) {
  return {{"scheme", one.scheme},
          {"layers", one.layers},
          {"rest", one.rest},
          {"lr", estimate(one.lr)},
          {"beyond", one.beyond}};
}

ordered_json efficiency_json(const DepthEfficiency& one) {
  ordered_json losses = ordered_json::array();
  for (const Estimate& loss : one.loss) losses.push_back(estimate(loss));
  return {{"scheme", one.scheme},
          {"rest", one.rest},
          {"layers", one.layers},
          {"loss", std::move(losses)},
          {"gain_per_doubling", optional(one.gain_per_doubling, estimate)},
          {"useful_layers", one.useful_layers},
          {"useful_share", json_number(one.useful_share)}};
}

// The bounds of the task where all runs share them: rows of another length, or tasks of several families, have others.
ordered_json task_json(const Outcomes& outcomes, const std::string& name) {
  constexpr double kSameEntropy = 0.05;  // nats; every data seed has counts of its own
  ordered_json task = {{"name", name}};
  const auto ended = [](const RunOutcome& run) { return run.status != RunStatus::waiting; };
  const auto first = std::find_if(outcomes.begin(), outcomes.end(), ended);
  if (first == outcomes.end()) return task;
  const auto all_have = [&](auto same) {
    return std::all_of(first, outcomes.end(), [&](const RunOutcome& run) { return !ended(run) || same(run); });
  };
  if (first->optimum && all_have([&](const RunOutcome& run) { return run.optimum == first->optimum; }))
    task["optimum"] = json_number(*first->optimum);
  if (first->unigram_entropy && all_have([&](const RunOutcome& run) {
        return run.unigram_entropy && std::abs(*run.unigram_entropy - *first->unigram_entropy) < kSameEntropy;
      }))
    task["unigram"] = json_number(*first->unigram_entropy);
  return task;
}

template <typename T, typename Write>
ordered_json list(const std::vector<T>& values, Write write) {
  ordered_json all = ordered_json::array();
  for (const T& value : values) all.push_back(write(value));
  return all;
}

}  // namespace

std::string sweep_results_json(const Outcomes& outcomes, const SweepFacts& facts) {
  const std::vector<Tuned> best = tuned(outcomes, std::nullopt, facts.sensitivity_rates);
  ordered_json all = {{"norma", NORMA_VERSION},
                      {"kind", "sweep"},
                      {"created", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                      {"seconds", facts.seconds},
                      {"config", facts.config},
                      {"command", facts.command}};
  if (!facts.environment.empty()) all["environment"] = ordered_json::parse(facts.environment, nullptr, false);
  if (!outcomes.empty()) {
    all["task"] = task_json(outcomes, facts.task);
  }
  all["schemes"] = list(facts.schemes, scheme_json);
  all["runs"] = list(outcomes, run_json);
  all["maps"] = list(stability_maps(outcomes), map_json);
  all["tuned"] = list(best, tuned_json);
  all["ramps"] = list(ramp_limits(outcomes), ramp_json);
  all["depth_efficiency"] = list(depth_efficiency(best), efficiency_json);
  all["notes"] = facts.notes;
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace norma
