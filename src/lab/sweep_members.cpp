#include "lab/sweep_members.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "lab/sweep_files.h"
#include "norma/core/error.h"
#include "norma/store/atomic_file.h"
#include "norma/store/run_directory.h"
#include "norma/train/member_checkpoint.h"
#include "norma/train/run_schemes.h"
#include "norma/train/trainer.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

// The configuration of one member as `norma train` would resolve it.
RunConfig member_config(const RunConfig& cohort, const SweepCell& cell) {
  RunConfig config = cohort;
  config.train = cell.config.train;
  config.members = {};
  return config;
}

// Where a run that has kept no scheme of its own finds the one it was asked to train.
SchemeLibrary chosen(const RunConfig& config) {
  SchemeLibrary schemes;
  schemes.put(config.model.scheme);
  return schemes;
}

// The result of one member, as if it had run alone.
json member_result(const json& cohort, std::size_t index) {
  json result = cohort;
  json member = cohort.at("members").at(index);
  const auto members = static_cast<double>(cohort.at("members").size());
  if (member.at("diverged") == true) result["steps"] = member.at("diverged_at_step");
  if (result["gflops"].is_number()) result["gflops"] = result["gflops"].get<double>() / members;
  result["memory_bytes"] = static_cast<std::int64_t>(result.value("memory_bytes", 0.0) / members);
  result["tokens_per_second"] = member.at("tokens_per_second");
  result["cohort_members"] = cohort.at("members").size();
  member["member"] = 0;
  result["members"] = json::array({std::move(member)});
  return result;
}

// A run directory to write to, whether it is there already or not.
RunDirectory open_run(const fs::path& path, const std::string& config, const std::string& environment,
                      const std::string& scheme) {
  if (RunView(path).exists()) return RunDirectory::resume(path);
  fs::remove_all(path);  // a kill came before its configuration was written
  return RunDirectory::create(path, config, environment, scheme);
}

struct MemberRecord {
  std::int64_t step;
  std::vector<Metric> metrics;
};

std::vector<std::vector<MemberRecord>> records_by_member(const fs::path& metrics, std::size_t members,
                                                         std::int64_t until) {
  std::vector<std::vector<MemberRecord>> all(members);
  if (!fs::exists(metrics)) return all;
  for (MetricRecord& record : read_metrics(metrics)) {
    if (record.step > until) break;
    std::size_t member = 0;
    if (const MetricValue* value = record.find("member"))
      member = static_cast<std::size_t>(std::get<std::int64_t>(*value));
    if (member >= members) fail("'{}' speaks of member {} of {}", metrics.string(), member, members);
    std::erase_if(record.metrics, [](const Metric& metric) { return metric.name == "member"; });
    all[member].push_back({record.step, std::move(record.metrics)});
  }
  return all;
}

void write_logs(const RunDirectory& run, const std::vector<MemberRecord>& records, std::int64_t after, bool events) {
  MetricsLog log = run.open_metrics(after);
  for (const MemberRecord& record : records) log.append(record.step, record.metrics);
  log.sync();
  if (!events) return;
  EventWriter writer = run.open_events(after);
  for (const MemberRecord& record : records) {
    std::vector<EventScalar> scalars;
    for (const Metric& metric : record.metrics) {
      if (const double* value = std::get_if<double>(&metric.value))
        scalars.push_back({metric.name, static_cast<float>(*value)});
    }
    if (!scalars.empty()) writer.add_scalars(record.step, scalars);
  }
  writer.flush();
}

}  // namespace

fs::path SweepPaths::rung(const std::string& group, std::int64_t step) const {
  return root / "rungs" / fmt::format("{}-{}.json", group, step);
}

void write_marker(const SweepPaths& paths, const CohortPlan& plan) {
  make_directory(paths.cohorts());
  write_atomically(paths.marker(plan.id),
                   json{{"members", plan.members}, {"from", plan.from}, {"until", plan.until}}.dump(2) + "\n");
}

std::vector<CohortPlan> read_markers(const SweepPaths& paths, const std::function<void(const std::string&)>& warn) {
  std::vector<CohortPlan> plans;
  if (!fs::is_directory(paths.cohorts())) return plans;
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(paths.cohorts())) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  for (const fs::path& path : entries) {
    if (path.extension() != ".json") continue;
    const json marker = parse_json(read_small_file(path));
    try {
      plans.push_back({path.stem().string(), marker.at("members").get<std::vector<std::string>>(), marker.at("from"),
                       marker.at("until")});
    } catch (const json::exception&) {
      warn(fmt::format("'{}' is damaged; its cohort starts again", path.string()));
      remove_cohort(paths, path.stem().string());
    }
  }
  // Directories without a marker were being put together or removed when a kill came.
  for (const fs::path& path : entries) {
    if (fs::is_directory(path) && !fs::exists(paths.marker(path.filename().string()))) fs::remove_all(path);
  }
  remove_stale_temporaries(paths.cohorts());
  return plans;
}

void remove_cohort(const SweepPaths& paths, const std::string& id) {
  fs::remove(paths.marker(id));
  fs::remove_all(paths.cohort(id));
}

std::int64_t paused_step(const SweepPaths& paths, const std::string& id,
                         const std::function<void(const std::string&)>& warn) {
  const RunView view(paths.run(id));
  if (!view.exists()) return 0;
  // Checkpoints come with the cohort that pauses, not every so often.
  const CheckpointSearch search = checkpoint_to_resume(view, 0);
  for (const std::string& warning : search.warnings) warn(warning);
  return search.newest ? search.newest->step : 0;
}

void join_cohort(const SweepPaths& paths, const CohortPlan& plan, const RunConfig& config,
                 const std::string& environment) {
  std::vector<SafetensorsFile> files;
  for (const std::string& id : plan.members) files.emplace_back(RunView(paths.run(id)).checkpoint_path(plan.from));
  // What the data resolves is the same for every member.
  const RunView first(paths.run(plan.members[0]));
  RunConfig resolved = parse_config(first.config(), plan.members[0], library_of_run(first.path(), chosen(config)));
  resolved.train = config.train;
  resolved.members = config.members;
  const std::string text = print_config(resolved);
  const CheckpointParts parts = join_members(files, text);
  fs::remove_all(paths.cohort(plan.id));
  RunDirectory directory = RunDirectory::create(paths.cohort(plan.id), text, environment, first.scheme());
  directory.save_checkpoint(parts.step, parts.tensors, parts.metadata);
}

std::vector<std::string> split_cohort(const SweepPaths& paths, const CohortPlan& plan,
                                      const std::vector<const SweepCell*>& cells, const SplitOptions& options) {
  const RunView cohort(paths.cohort(plan.id));
  const auto any = std::find_if(cells.begin(), cells.end(), [](const SweepCell* cell) { return cell != nullptr; });
  const RunConfig config =
      parse_config(cohort.config(), cohort.config_path().string(),
                   library_of_run(cohort.path(), any == cells.end() ? SchemeLibrary() : chosen((*any)->config)));
  const SafetensorsFile checkpoint(cohort.checkpoint_path(options.until));
  const json result = options.result.empty() ? json() : json::parse(options.result);
  const auto records = records_by_member(cohort.metrics_path(), cells.size(), options.until);
  std::vector<std::string> results(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] == nullptr) continue;
    const std::string text = print_config(member_config(config, *cells[i]));
    const json own = result.is_null() ? json() : member_result(result, i);
    const bool diverged = !own.is_null() && own.at("members").at(0).at("diverged") == true;
    results[i] = own.is_null() ? "" : own.dump(2) + "\n";
    if (RunView(paths.run(cells[i]->id)).is_done()) continue;
    RunDirectory run = open_run(paths.run(cells[i]->id), text, options.environment, cohort.scheme());
    write_logs(run, records[i], plan.from > 0 ? plan.from : -1, cells[i]->config.train.tensorboard);
    const bool ended = options.ended || diverged;
    if (!ended || options.weights == KeepWeights::yes) {
      const CheckpointParts parts = extract_member(checkpoint, static_cast<int>(i), text);
      run.save_checkpoint(parts.step, parts.tensors, parts.metadata, {.keep_last = 1});
    } else {
      fs::remove_all(run.checkpoints_path());
    }
    if (ended) run.finish(results[i]);
  }
  return results;
}

void stop_member(const SweepPaths& paths, const std::string& id, const std::string& result, std::int64_t step,
                 KeepWeights weights) {
  if (RunView(paths.run(id)).is_done()) return;
  RunDirectory run = RunDirectory::resume(paths.run(id));
  json own = json::parse(result);
  json& member = own.at("members").at(0);
  member["stopped_at_step"] = step;
  member["verdict"] = fmt::format("stopped early at step {}", step);
  if (weights == KeepWeights::no) fs::remove_all(run.checkpoints_path());
  run.finish(own.dump(2) + "\n");
}

}  // namespace norma
