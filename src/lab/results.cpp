#include "norma/lab/results.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "norma/version.h"

namespace norma {

Results new_results(ResultsKind kind) {
  Results results;
  results.norma = NORMA_VERSION;
  results.kind = kind;
  results.created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return results;
}

void add_findings(Results& results, Findings findings) {
  results.schemes = std::move(findings.schemes);
  results.analyses = std::move(findings.analyses);
  results.depth_use = std::move(findings.depth_use);
  results.notes = std::move(findings.notes);
}

std::optional<Estimate> more_right(const Results& results, const std::string& a, const std::string& b) {
  for (const Comparison& pair : results.comparisons) {
    if (!pair.right) continue;
    const Estimate& more = *pair.right;
    if (pair.a == a && pair.b == b) return more;
    if (pair.a == b && pair.b == a) return Estimate{-more.mean, -more.high, -more.low, more.n};
  }
  return std::nullopt;
}

void add_outcomes(Results& results, const Outcomes& outcomes, const std::vector<double>& sensitivity_rates) {
  results.runs = outcomes;
  results.maps = stability_maps(outcomes);
  results.tuned = tuned(outcomes, std::nullopt, sensitivity_rates);
  results.ramps = ramp_limits(outcomes);
  results.depth_efficiency = depth_efficiency(results.tuned);
  for (std::string& note : fault_notes(outcomes)) results.notes.push_back(std::move(note));
}

// Rows of another length, or tasks of several families, have other bounds.
TaskFacts task_of(const Outcomes& outcomes, const std::string& name) {
  constexpr double kSameEntropy = 0.05;  // nats; every data seed has counts of its own
  TaskFacts task{.name = name};
  const auto ended = [](const RunOutcome& run) { return run.status != RunStatus::waiting; };
  const auto first = std::find_if(outcomes.begin(), outcomes.end(), ended);
  if (first == outcomes.end()) return task;
  const auto all_have = [&](auto same) {
    return std::all_of(first, outcomes.end(), [&](const RunOutcome& run) { return !ended(run) || same(run); });
  };
  if (first->optimum && all_have([&](const RunOutcome& run) { return run.optimum == first->optimum; }))
    task.optimum = first->optimum;
  if (first->unigram_entropy && all_have([&](const RunOutcome& run) {
        return run.unigram_entropy && std::abs(*run.unigram_entropy - *first->unigram_entropy) < kSameEntropy;
      }))
    task.unigram = first->unigram_entropy;
  return task;
}

bool is_comparable(const Results& results, const Tuned& tuned) {
  return tuned.steps > 0 || std::ranges::none_of(results.tuned, [](const Tuned& one) { return one.steps > 0; });
}

}  // namespace norma
