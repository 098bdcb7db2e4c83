// Experiments: shorter copies of a run with one change each.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/limits.h"
#include "norma/core/error.h"
#include "norma/lab/diagnose.h"
#include "norma/store/run_directory.h"
#include "norma/train/cohort.h"
#include "norma/train/trained_run.h"

namespace norma {
namespace {

constexpr std::size_t kMostTrials = 3;
constexpr std::int64_t kFewestSteps = 100, kStepsToLearn = 300;

// By the speed that was recorded last; members of a cohort shared the machine.
double seconds_of(const RunHistory& run, const MemberHistory& member, std::int64_t steps) {
  for (auto record = member.steps.rbegin(); record != member.steps.rend(); ++record) {
    if (!(record->tokens_per_second > 0)) continue;
    return static_cast<double>(steps * tokens_per_step(run.config)) / record->tokens_per_second /
           static_cast<double>(run.members.size());
  }
  return 0;
}

// As few as may tell: past the step where it went wrong, or long enough that a run of this length begins to learn.
std::int64_t trial_steps(const MemberHistory& member, const Diagnosis& diagnosis) {
  const std::int64_t all = member.settings.steps;
  if (diagnosis.condition == Condition::diverged && !member.steps.empty())
    return std::min(all, std::max(kFewestSteps, 4 * member.steps.back().step));
  return std::min(all, std::max(kStepsToLearn, all / 4));
}

// The member by itself.
RunConfig alone(const RunHistory& run, const MemberHistory& member) {
  RunConfig config = run.config;
  config.train = member.settings;
  config.members = {};
  config.data = stored_data(config.data, run.path);
  return config;
}

// Warmup keeps its share of the run.
void set_length(RunConfig& config, std::int64_t steps) {
  const std::int64_t before = config.train.steps;
  if (steps == before) return;
  std::int64_t& warmup = config.train.schedule.warmup;
  if (warmup > 0) warmup = std::max<std::int64_t>(1, warmup * steps / before);
  override_config(config, fmt::format("train.steps={}", steps));
}

std::string folder_name(std::size_t number, const std::vector<std::string>& changes) {
  std::string name = fmt::format("{}", number);
  for (const std::string& change : changes) name += "-" + change;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '=';
    if (!plain) c = '_';
  }
  return name;
}

bool changes_length(const Suggestion& suggestion) {
  return std::any_of(suggestion.changes.begin(), suggestion.changes.end(),
                     [](const std::string& change) { return change.starts_with("train.steps="); });
}

}  // namespace

std::vector<Trial> plan_trials(const RunHistory& run, const MemberHistory& member, const Diagnosis& diagnosis,
                               std::int64_t steps, const SchemeLibrary& schemes) {
  if (steps == 0) steps = trial_steps(member, diagnosis);
  std::vector<Trial> trials;
  for (const Suggestion& suggestion : diagnosis.suggestions) {
    if (suggestion.changes.empty()) continue;
    Trial trial{.name = "", .words = suggestion.words, .config = alone(run, member)};
    for (const std::string& change : suggestion.changes) override_config(trial.config, change, schemes);
    const std::int64_t warmup = trial.config.train.schedule.warmup;
    if (!changes_length(suggestion)) set_length(trial.config, steps);
    if (trial.config.train.schedule.warmup != warmup)
      trial.words += fmt::format(" (at this length {})", trial.config.train.schedule.warmup);
    trial.seconds = seconds_of(run, member, trial.config.train.steps);
    trial.name = folder_name(trials.size() + 1, suggestion.changes);
    trials.push_back(std::move(trial));
  }
  std::stable_sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; });
  if (trials.size() > kMostTrials) trials.resize(kMostTrials);
  if (trials.empty()) return trials;
  Trial control{.name = "0-as-it-was", .words = "as it was", .config = alone(run, member)};
  set_length(control.config, steps);
  control.seconds = seconds_of(run, member, control.config.train.steps);
  trials.insert(trials.begin(), std::move(control));
  return trials;
}

TrialResult read_trial(const Trial& trial, const std::filesystem::path& directory) {
  const RunView view(directory);
  const RunResult result = read_result(view.result(), fmt::format("'{}'", view.result_path().string()));
  if (result.members.size() != 1) fail("'{}' is damaged: it has more than one member", view.result_path().string());
  const MemberResult& member = result.members.front();
  return {.name = trial.name,
          .words = trial.words,
          .steps = trial.config.train.steps,
          .outcome = member.outcome,
          .loss = member.outcome == Outcome::diverged ? kNaN : member.evaluation_loss.value_or(member.final_loss),
          .verdict = verdict_of(member.outcome, member.facts)};
}

std::string conclude_trials(const std::vector<TrialResult>& results, const Diagnosis& diagnosis) {
  const auto learned = [](const TrialResult& result) {
    return result.outcome == Outcome::stable || result.outcome == Outcome::stable_after_spikes;
  };
  if (results.size() < 2) return "";
  const TrialResult& control = results.front();
  const auto best = std::min_element(results.begin() + 1, results.end(), [&](const auto& a, const auto& b) {
    if (learned(a) != learned(b)) return learned(a);
    return std::isfinite(a.loss) && (!std::isfinite(b.loss) || a.loss < b.loss);
  });
  const std::string before = std::isfinite(control.loss) ? fmt::format("{:.3f} as it was", control.loss)
                                                         : fmt::format("unchanged, it again {}", control.verdict);
  if (!learned(*best))
    return fmt::format(
        "None of these made it learn in {} steps ({}); {}.", best->steps, before,
        diagnosis.cause == Cause::unknown ? "the cause stays unknown" : "longer trials (--steps) may tell more");
  if (learned(control) && !(best->loss < control.loss))
    return fmt::format("None of these is better than the run as it was ({:.3f} after {} steps).", control.loss,
                       control.steps);
  return fmt::format(
      "What helped most: {}. Loss {:.3f} after {} steps, {}. One seed each: enough to see whether it "
      "learns, not to rank what is close.",
      best->words, best->loss, best->steps, before);
}

}  // namespace norma
