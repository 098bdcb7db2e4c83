#include "lab/sweep/members.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "lab/sweep/files.h"
#include "norma/core/error.h"
#include "norma/store/atomic_file.h"
#include "norma/store/run_directory.h"
#include "norma/train/data_record.h"
#include "norma/train/member_checkpoint.h"
#include "norma/train/run_schemes.h"
#include "norma/train/trained_run.h"
#include "norma/train/trainer.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

constexpr const char* kMemberResult = "the result of a member";

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
RunResult member_result(const RunResult& cohort, std::size_t index) {
  RunResult result = cohort;
  MemberResult member = cohort.members.at(index);
  const auto members = static_cast<double>(cohort.members.size());
  if (member.outcome == Outcome::diverged) result.steps = member.facts.diverged_at_step;
  if (result.gflops) *result.gflops /= members;
  result.memory_bytes = static_cast<std::int64_t>(static_cast<double>(result.memory_bytes) / members);
  result.tokens_per_second = member.tokens_per_second;
  result.cohort_members = static_cast<int>(cohort.members.size());
  member.member = 0;
  result.members = {std::move(member)};
  return result;
}

// A run directory to write to, whether it is there already or not.
RunDirectory open_run(const Folder& folder, const RunBeginning& beginning) {
  return folder.has_file("config.toml") ? RunDirectory::resume(folder) : RunDirectory::create(folder, beginning);
}

// Every record that was written is there, unless the member had diverged before.
void require_no_gap(const std::vector<MemberRecord>& records, const std::vector<std::int64_t>& steps,
                    const fs::path& metrics, std::size_t member) {
  auto next = records.begin();
  for (const std::int64_t step : steps) {
    next = std::find_if(next, records.end(), [&](const MemberRecord& record) { return record.step >= step; });
    if (next == records.end() || next->step != step)
      fail("'{}' has no record of member {} at step {}: it was emptied, cut or removed", metrics.string(), member,
           step);
  }
}

void write_logs(const RunDirectory& run, const std::vector<MemberRecord>& records, std::int64_t from,
                const TrainConfig& train) {
  const std::int64_t after = from > 0 ? from : -1;
  MetricsLog log = run.open_metrics(after, {}, recorded_steps(train, 0, after));
  for (const MemberRecord& record : records) log.append(record.step, record.metrics);
  log.seal();
  if (!train.tensorboard) return;
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

// What the cohort has kept of its data, so that a member can be moved and asked as any run.
void copy_vocabulary(const Folder& cohort, const RunDirectory& run) {
  for (const fs::path& path : {run.vocabulary_path(), run.tokenizer_path()}) {
    const std::string name = path.filename().string();
    if (cohort.has_file(name) && !run.folder().has_file(name)) write_atomically(run.folder(), name, cohort.read(name));
  }
}

bool has_diverged(const std::string& result) {
  return read_result(result, kMemberResult).members.front().outcome == Outcome::diverged;
}

std::string marker_name(const std::string& id) { return id + ".json"; }

// As begin_cohort makes them.
bool is_cohort_id(const std::string& name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

void check_config(const RunView& run, const Checkpoint& checkpoint, const SchemeLibrary& schemes) {
  const auto text_of = [](RunConfig config) {
    config.train.threads = 0;  // may differ from one process to the next
    return print_config(config);
  };
  const auto copy = checkpoint.file.metadata().find("norma.config");
  if (copy == checkpoint.file.metadata().end() ||
      text_of(parse_config(run.config(), run.config_path().string(), schemes)) !=
          text_of(parse_config(copy->second, checkpoint.file.path().string(), schemes)))
    fail("'{}' is not what '{}' says", run.config_path().string(), checkpoint.file.path().string());
}

void check_data(const SweepPaths& paths, const RunView& run, const SchemeLibrary& schemes) {
  const RunView sweep(paths.root);  // keeps its record under the same name
  const DataRecord known = parse_data_record(sweep.data(), sweep.data_path().string());
  const DataRecord own = parse_data_record(run.data(), run.data_path().string());
  const auto same = [&](const std::string& file) {
    const auto in_sweep = known.files.find(file), in_run = own.files.find(file);
    const bool both = in_sweep != known.files.end() && in_run != own.files.end();
    return both ? in_sweep->second.same_content(in_run->second)
                : in_sweep == known.files.end() && in_run == own.files.end();
  };
  std::vector<std::string> files = data_files(parse_config(run.config(), run.config_path().string(), schemes).data);
  for (const auto& [file, print] : own.files) files.push_back(file);
  for (const std::string& file : files) {
    if (!same(file)) fail("'{}' is not what '{}' says", run.data_path().string(), sweep.data_path().string());
  }
}

void tidy_sweep(const Folder& root) {
  root.make_sub("runs");
  std::vector<Folder> folders = {root};
  for (const char* name : {"runs", "cohorts", "rungs"}) {
    if (root.kind(name) != PathKind::nothing) folders.push_back(root.sub(name));
  }
  for (const Folder& folder : folders) remove_stale_temporaries(folder);
}

void write_marker(const SweepPaths& paths, const CohortPlan& plan) {
  write_atomically(paths.cohorts_folder(), marker_name(plan.id),
                   with_checksum({{"members", plan.members}, {"from", plan.from}, {"until", plan.until}}));
}

std::vector<CohortPlan> read_markers(const SweepPaths& paths, const Warn& warn) {
  std::vector<CohortPlan> plans;
  const Folder cohorts = paths.cohorts_folder();
  remove_stale_temporaries(cohorts);
  for (const std::string& name : cohorts.names()) {
    const std::string id = fs::path(name).stem().string();
    if (!is_cohort_id(id)) continue;
    if (name == id) {
      // Without a marker it was being put together or removed when a kill came.
      if (!cohorts.has_file(marker_name(id))) remove_run(cohorts, id);
      continue;
    }
    if (name != marker_name(id)) continue;
    const auto start_again = [&] {
      warn(fmt::format("'{}' is damaged; its cohort starts again", (cohorts / name).string()));
      remove_cohort(paths, id);
    };
    try {
      const json marker = without_checksum(cohorts.read(name), cohorts / name);
      plans.push_back(
          {id, marker.at("members").get<std::vector<std::string>>(), marker.at("from"), marker.at("until")});
    } catch (const Error&) {
      start_again();
    } catch (const json::exception&) {
      start_again();
    }
  }
  return plans;
}

void remove_cohort(const SweepPaths& paths, const std::string& id) {
  const Folder cohorts = paths.cohorts_folder();
  cohorts.remove(marker_name(id));
  remove_run(cohorts, id);
  cohorts.sync();  // the loss of power must not bring it back into a sweep that has ended
}

std::int64_t paused_step(const SweepPaths& paths, const std::string& id, const Warn& warn) {
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
  for (const std::string& id : plan.members) {
    Checkpoint checkpoint = RunView(paths.run(id)).checkpoint(plan.from);
    check_config(RunView(paths.run(id)), checkpoint, chosen(config));
    check_data(paths, RunView(paths.run(id)), chosen(config));
    files.push_back(std::move(checkpoint.file));
    // Before anything is trained that its history could not take up.
    RunDirectory::resume(paths.runs_folder().sub(id))
        .open_metrics(plan.from, {}, recorded_steps(config.train, 0, plan.from));
  }
  // What the data resolves is the same for every member.
  const RunView first(paths.run(plan.members[0]));
  RunConfig resolved =
      parse_config(first.config(), first.config_path().string(), library_of_run(first.path(), chosen(config)));
  resolved.train = config.train;
  resolved.members = config.members;
  const std::string text = print_config(resolved);
  const CheckpointParts parts = join_members(files, text);
  const Folder cohorts = paths.cohorts_folder();
  remove_run(cohorts, plan.id);
  RunDirectory directory = RunDirectory::create(
      cohorts.make_sub(plan.id),
      {.config = text, .environment = environment, .scheme = config.model.scheme->text, .data = first.data()});
  directory.save_checkpoint(parts.step, parts.tensors, parts.metadata);
}

std::vector<std::vector<MemberRecord>> member_records(const RunView& cohort, const CohortPlan& plan,
                                                      const Checkpoint& checkpoint, const TrainConfig& train) {
  const std::size_t members = plan.members.size();
  const fs::path metrics = cohort.metrics_path();
  std::vector<std::vector<MemberRecord>> all(members);
  verify_metrics(Folder(cohort.path()), metrics.filename().string());
  if (kind_of(metrics) != PathKind::nothing) {
    for (MetricRecord& record : read_metrics(metrics)) {
      if (record.step > checkpoint.step) break;
      const MetricValue* value = record.find("member");
      const std::int64_t* of = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
      const std::size_t member = of == nullptr ? 0 : static_cast<std::size_t>(*of);
      if ((value != nullptr && of == nullptr) || member >= members)
        fail("'{}' speaks of member {} of {}", metrics.string(), member, members);
      std::erase_if(record.metrics, [](const Metric& metric) { return metric.name == "member"; });
      all[member].push_back({record.step, std::move(record.metrics)});
    }
  }
  for (std::size_t i = 0; i < members; ++i) {
    const std::optional<std::int64_t> end = diverged_at(checkpoint.file, static_cast<int>(i));
    require_no_gap(all[i], recorded_steps(train, plan.from, end ? *end - 1 : checkpoint.step), metrics, i);
  }
  return all;
}

std::vector<std::string> member_results(const std::string& cohort, std::size_t members) {
  const RunResult all = read_result(cohort, "the result of the cohort");
  if (all.members.size() != members)
    fail("the result of the cohort is damaged: it has {} members, not {}", all.members.size(), members);
  std::vector<std::string> results;
  for (std::size_t i = 0; i < members; ++i) results.push_back(write_result(member_result(all, i)));
  return results;
}

std::vector<std::string> split_cohort(const SweepPaths& paths, const CohortPlan& plan,
                                      const std::vector<const SweepCell*>& cells, const SplitOptions& options) {
  const RunView cohort(paths.cohort(plan.id));
  const auto any = std::find_if(cells.begin(), cells.end(), [](const SweepCell* cell) { return cell != nullptr; });
  const RunConfig config =
      parse_config(cohort.config(), cohort.config_path().string(),
                   library_of_run(cohort.path(), any == cells.end() ? SchemeLibrary() : chosen((*any)->config)));
  // Compared before it is copied: a copy has a checksum of its own and would vouch for the damage.
  const Checkpoint checkpoint = cohort.checkpoint(options.until);
  const auto records = member_records(cohort, plan, checkpoint, config.train);
  std::vector<std::string> results(cells.size());
  if (!options.result.empty()) results = member_results(options.result, cells.size());
  const Folder runs = paths.runs_folder();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] == nullptr || RunView(paths.run(cells[i]->id)).is_done()) continue;
    const std::string text = print_config(member_config(config, *cells[i]));
    RunDirectory run = open_run(runs.make_sub(cells[i]->id),
                                {.config = text,
                                 .environment = options.environment,
                                 .scheme = cells[i]->config.model.scheme->text,  // the cohort's copy has no checksum
                                 .data = cohort.data()});
    write_logs(run, records[i], plan.from, cells[i]->config.train);
    const bool ended = options.ended || (!results[i].empty() && has_diverged(results[i]));
    if (!ended || options.weights == KeepWeights::yes) {
      const CheckpointParts parts = extract_member(checkpoint.file, static_cast<int>(i), text);
      run.save_checkpoint(parts.step, parts.tensors, parts.metadata, {.keep_last = 1});
      copy_vocabulary(Folder(cohort.path()), run);
    } else {
      run.remove_checkpoints();
    }
    if (ended) run.finish(results[i]);
  }
  return results;
}

void stop_member(const SweepPaths& paths, const std::string& id, const std::string& result, std::int64_t step,
                 KeepWeights weights) {
  if (RunView(paths.run(id)).is_done()) return;
  RunDirectory run = RunDirectory::resume(paths.runs_folder().sub(id));
  verify_metrics(run.folder(), run.metrics_path().filename().string());  // nobody will open them again
  RunResult own = read_result(result, kMemberResult);
  own.members.front().outcome = Outcome::stopped;
  own.members.front().facts.stopped_at_step = step;
  if (weights == KeepWeights::no) run.remove_checkpoints();
  run.finish(write_result(own));
}

}  // namespace norma
