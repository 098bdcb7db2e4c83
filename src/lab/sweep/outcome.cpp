#include "norma/lab/sweep_outcome.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "lab/limits.h"
#include "norma/core/error.h"
#include "norma/store/metrics.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

using json = nlohmann::json;

constexpr double kLearned = 0.02;  // nats below the unigram entropy, as in the verdict of a run

std::optional<double> number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::string word(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::int64_t whole(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

void read_curves(RunOutcome& outcome, const std::filesystem::path& metrics) {
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
  }
}

}  // namespace

std::string_view name_of(RunStatus status) {
  switch (status) {
    case RunStatus::waiting: return "waiting";
    case RunStatus::running: return "running";
    case RunStatus::finished: return "finished";
    case RunStatus::diverged: return "diverged";
    case RunStatus::stopped: return "stopped";
  }
  return "?";
}

double RunOutcome::loss() const {
  if (status != RunStatus::finished) return kInfinity;
  return evaluation_loss.value_or(final_loss);
}

bool RunOutcome::learned_nothing() const {
  return status == RunStatus::finished && unigram_entropy && !(loss() <= *unigram_entropy - kLearned);
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
  const json result = parse_json(view.result());
  if (!result.is_object() || !result.contains("members") || !result["members"].is_array() ||
      result["members"].size() != 1 || !result["members"][0].is_object())
    fail("'{}' is damaged; remove the run directory to train it again", view.result_path().string());
  const json& member = result["members"][0];
  known.last_step = whole(result, "steps");
  known.optimum = number(result, "optimum");
  known.final_loss = number(member, "final_loss").value_or(kNaN);
  known.best_loss = number(member, "best_loss").value_or(kNaN);
  known.evaluation_loss = number(member, "evaluation_loss");
  known.best_evaluation_loss = number(member, "best_evaluation_loss");
  known.diverged_at_step = whole(member, "diverged_at_step");
  known.diverged_because = word(member, "diverged_because");
  known.first_bad_wire = word(member, "first_bad_wire");
  known.spikes = whole(member, "spikes");
  known.stopped_at_step = whole(member, "stopped_at_step");
  known.tokens_per_second = number(member, "tokens_per_second").value_or(0);
  known.unigram_entropy = number(member, "unigram_entropy");
  known.verdict = word(member, "verdict");
  const bool diverged = member.contains("diverged") && member["diverged"] == true;
  known.status = diverged ? RunStatus::diverged : known.stopped_at_step > 0 ? RunStatus::stopped : RunStatus::finished;
  read_curves(known, view.metrics_path());
  return known;
}

}  // namespace norma
