#include "norma/lab/sweep_outcome.h"

#include "lab/limits.h"
#include "norma/core/error.h"
#include "norma/store/metrics.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

// `records`: how many independent answers an accuracy is worth.
void read_curves(RunOutcome& outcome, const std::filesystem::path& metrics, double records) {
  if (!std::filesystem::exists(metrics)) return;
  for (const MetricRecord& record : read_metrics(metrics)) {
    const auto add = [&](const char* name, LossCurve& curve) {
      const MetricValue* value = record.find(name);
      const double* loss = value == nullptr ? nullptr : std::get_if<double>(value);
      if (loss == nullptr) return;
      curve.step.push_back(record.step);
      curve.loss.push_back(*loss);
    };
    add("loss", outcome.curve);
    add("evaluation_loss", outcome.evaluations);
    const MetricValue* accuracy = record.find("evaluation_accuracy");
    const double* share = accuracy == nullptr ? nullptr : std::get_if<double>(accuracy);
    if (share != nullptr) outcome.accuracy = RightShare{*share, records};
  }
}

RunResult read_result_of(const RunView& run) {
  const std::string text = run.result(), where = fmt::format("'{}'", run.result_path().string());
  try {
    RunResult result = read_result(text, where);
    if (result.members.size() != 1) fail("{} is damaged: it has {} members, not 1", where, result.members.size());
    return result;
  } catch (const Error& error) {
    fail("{}; remove the run directory to train it again", error.what());
  }
}

RunStatus status_after(Outcome outcome) {
  switch (outcome) {
    case Outcome::diverged: return RunStatus::diverged;
    case Outcome::stopped: return RunStatus::stopped;
    default: return RunStatus::finished;
  }
}

}  // namespace

std::string RunOutcome::verdict() const {
  if (!outcome) return "";
  return verdict_of(
      *outcome,
      {.diverged_at_step = diverged_at_step, .diverged_because = diverged_because, .stopped_at_step = stopped_at_step});
}

double RunOutcome::loss() const {
  if (status != RunStatus::finished || faulty()) return kInfinity;
  return evaluation_loss.value_or(final_loss);
}

bool RunOutcome::learned_nothing() const {
  return status == RunStatus::finished && !faulty() && unigram_entropy && !(loss() <= *unigram_entropy - kLearned);
}

double RunOutcome::initial_loss() const {
  return !curve.step.empty() && curve.step.front() == 1 ? curve.loss.front() : kNaN;
}

RunOutcome outcome_of(std::string id, std::map<std::string, std::string> axes, const RunConfig& config) {
  RunOutcome outcome;
  outcome.id = std::move(id);
  outcome.axes = std::move(axes);
  outcome.scheme = config.model.scheme.asked();
  outcome.layers = config.model.layers;
  outcome.width = config.model.width;
  outcome.lr = config.train.lr;
  outcome.warmup = config.train.schedule.warmup;
  outcome.seed = config.train.seed;
  outcome.steps = config.train.steps;
  outcome.schedule = name_of(config.train.schedule.shape);
  outcome.final_loss = outcome.best_loss = kNaN;
  return outcome;
}

RunOutcome read_outcome(RunOutcome known, const std::filesystem::path& run) {
  const RunView view(run);
  known.status = RunStatus::waiting;
  if (!view.exists() || !view.is_done()) return known;
  view.verify_end();
  const RunResult result = read_result_of(view);
  const MemberResult& member = result.members.front();
  known.last_step = result.steps;
  known.optimum = result.optimum;
  known.final_loss = member.final_loss;
  known.best_loss = member.best_loss;
  known.evaluation_loss = member.evaluation_loss;
  known.best_evaluation_loss = member.best_evaluation_loss;
  known.diverged_at_step = member.facts.diverged_at_step;
  known.diverged_because = member.facts.diverged_because;
  known.first_bad_wire = member.facts.first_bad_wire;
  known.spikes = member.spikes;
  known.stopped_at_step = member.facts.stopped_at_step;
  known.tokens_per_second = member.tokens_per_second.value_or(0);
  known.unigram_entropy = member.unigram_entropy;
  known.outcome = member.outcome;
  known.status = status_after(member.outcome);
  // Runs of older versions did not count records.
  read_curves(known, view.metrics_path(), member.evaluation_records.value_or(kInfinity));
  return known;
}

}  // namespace norma
