#include "trial.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

namespace norma::faults {
namespace {

constexpr int kRepetitions = 3;

Outcome judge_end(const Bench& bench, const Scenario& scenario, Verdict when_the_same) {
  const Difference difference = compare(scenario.end, snapshot_of(bench.root()));
  if (!difference.lost.empty()) return {Verdict::lost, fmt::format("{}", fmt::join(difference.lost, "; "))};
  if (!difference.leftover.empty()) return {Verdict::leftover, fmt::format("{}", fmt::join(difference.leftover, ", "))};
  return {when_the_same, {}};
}

// A page is made from what is stored: where it cannot be written, the run has ended well all the same, the program
// warns, and the same command makes the page. Nothing else may be missing then.
bool only_a_page_is_missing(const Bench& bench, const Scenario& scenario, const Exit& exit) {
  if (exit.error.find("warning: there is no page") == std::string::npos) return false;
  const std::vector<std::string> lost = compare(scenario.end, snapshot_of(bench.root())).lost;
  return std::ranges::all_of(lost, [](const std::string& one) { return one.ends_with(".html is missing"); });
}

Outcome repeat(const Bench& bench, const Scenario& scenario) {
  std::string error;
  for (int i = 0; i < kRepetitions; ++i) {
    const Exit exit = bench.run(scenario.arguments, std::nullopt);
    if (const auto wrong = wrong_end(exit, false)) return {wrong->verdict, "when repeated: " + wrong->why};
    if (exit.code == 0) return judge_end(bench, scenario, Verdict::resumed);
    error = exit.error;
  }
  return {Verdict::dead_end, error};
}

}  // namespace

const char* word_of(Verdict verdict) {
  static const char* const words[kVerdicts] = {"harmless", "resumed", "refused",  "ignored", "not reached",
                                               "leftover", "lost",    "dead end", "crashed", "hung"};
  return words[static_cast<int>(verdict)];
}

std::optional<Outcome> wrong_end(const Exit& exit, bool was_killed) {
  if (exit.hung) return Outcome{Verdict::hung, "no end within the limit: " + exit.error};
  if (was_killed && exit.signal == SIGKILL) return {};
  if (exit.signal != 0) return Outcome{Verdict::crashed, fmt::format("signal {}: {}", exit.signal, exit.error)};
  if (exit.code != 0 && exit.code != 2)
    return Outcome{Verdict::crashed, fmt::format("exit code {}: {}", exit.code, exit.error)};
  if (exit.code == 2 && exit.error.empty()) return Outcome{Verdict::crashed, "exit code 2 without a word"};
  return {};
}

bool is_failure(Verdict verdict) { return verdict >= Verdict::leftover; }

Outcome try_injections(Bench& bench, const Scenario& scenario, const std::vector<Injection>& injections) {
  bench.clear(scenario.start);
  bool hit = false;
  for (const Injection& injection : injections) {
    const Exit exit = bench.run(scenario.arguments, injection);
    const bool hit_now = bench.call_that_was_hit().has_value();
    hit = hit || hit_now;
    if (const auto wrong = wrong_end(exit, hit_now)) return *wrong;
    if (exit.code == 0 && only_a_page_is_missing(bench, scenario, exit)) return repeat(bench, scenario);
    if (exit.code == 0) return judge_end(bench, scenario, hit ? Verdict::harmless : Verdict::not_reached);
  }
  return repeat(bench, scenario);
}

}  // namespace norma::faults
