#include "norma/lab/run_history.h"

#include "lab/directory_kind.h"
#include "lab/limits.h"
#include "norma/core/error.h"
#include "norma/store/metrics.h"
#include "norma/store/run_directory.h"
#include "norma/train/run_schemes.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

double recorded_number(const MetricValue& value) {
  if (const double* number = std::get_if<double>(&value)) return *number;
  if (const std::int64_t* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return kNaN;
}

double recorded_number(const MetricRecord& record, const char* name) {
  const MetricValue* value = record.find(name);
  return value == nullptr ? kNaN : recorded_number(*value);
}

std::string recorded_text(const MetricRecord& record, const char* name) {
  const MetricValue* value = record.find(name);
  const std::string* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? "" : *text;
}

StepRecord step_of(const MetricRecord& record) {
  StepRecord step{.step = record.step,
                  .loss = recorded_number(record, "loss"),
                  .gradient_norm = recorded_number(record, "gradient_norm"),
                  .lr = recorded_number(record, "lr"),
                  .tokens_per_second = recorded_number(record, "tokens_per_second")};
  for (const Metric& metric : record.metrics) {
    const std::size_t slash = metric.name.find('/');
    if (slash == std::string::npos) continue;
    step.probes.push_back({metric.name.substr(0, slash), metric.name.substr(slash + 1), recorded_number(metric.value)});
  }
  return step;
}

void add_record(const MetricRecord& record, const fs::path& file, std::vector<MemberHistory>& members) {
  const double member = record.find("member") == nullptr ? 0 : recorded_number(record, "member");
  if (!(member >= 0 && member < static_cast<double>(members.size())))
    fail("'{}' is damaged: step {} has a record of member {}, but the run has {}", file.string(), record.step, member,
         members.size());
  MemberHistory& own = members[static_cast<std::size_t>(member)];
  if (record.find("event") != nullptr) {
    own.events.push_back({record.step, recorded_text(record, "event"), recorded_text(record, "why")});
  } else if (record.find("evaluation_loss") != nullptr) {
    own.evaluations.step.push_back(record.step);
    own.evaluations.loss.push_back(recorded_number(record, "evaluation_loss"));
  } else if (record.find("loss") != nullptr) {
    own.steps.push_back(step_of(record));
  }
}

void take_result(RunHistory& history, const RunView& view) {
  view.verify_end();
  history.result = read_result(view.result(), fmt::format("'{}'", view.result_path().string()));
  if (history.result->members.size() != history.members.size())
    fail("'{}' is damaged: it has {} members, and the run has {}", view.result_path().string(),
         history.result->members.size(), history.members.size());
  for (std::size_t i = 0; i < history.members.size(); ++i) history.members[i].result = history.result->members[i];
}

}  // namespace

LossCurve MemberHistory::curve() const {
  LossCurve curve;
  for (const StepRecord& record : steps) {
    curve.step.push_back(record.step);
    curve.loss.push_back(record.loss);
  }
  return curve;
}

void require_run(const fs::path& path) {
  const PathKind kind = kind_of(path);
  if (kind == PathKind::nothing) fail("there is no run '{}'", path.string());
  if (kind != PathKind::folder) fail("'{}' is a file; expected the directory of a run", path.string());
  if (RunView(path).exists()) return;
  if (holds_sweep(path))
    fail("'{}' holds a sweep; expected the directory of one run, such as those in '{}'", path.string(),
         (path / "runs").string());
  if (holds_study(path)) fail("'{}' holds a study; expected the directory of one run", path.string());
  fail("'{}' holds no run: there is no config.toml", path.string());
}

RunHistory read_history(const fs::path& path, const SchemeLibrary& others) {
  require_run(path);
  const RunView view(path);
  RunHistory history{.path = path,
                     .config = parse_config(view.config(), view.config_path().string(), library_of_run(path, others))};
  const std::vector<TrainConfig> settings = member_configs(history.config);
  for (std::size_t i = 0; i < settings.size(); ++i)
    history.members.push_back({.member = static_cast<int>(i), .settings = settings[i]});
  if (view.is_done()) take_result(history, view);
  if (kind_of(view.metrics_path()) == PathKind::nothing) return history;
  for (const MetricRecord& record : read_metrics(view.metrics_path()))
    add_record(record, view.metrics_path(), history.members);
  return history;
}

}  // namespace norma
