#include "norma/train/trained_run.h"

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "norma/core/error.h"
#include "norma/train/cohort.h"
#include "norma/train/data_record.h"
#include "norma/train/member_checkpoint.h"
#include "norma/train/run_schemes.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

std::int64_t stored_step(const SafetensorsFile& file) {
  const auto state = file.metadata().find(kTrainingStateKey);
  if (state == file.metadata().end()) return 0;
  const nlohmann::json parsed = parse_json(state->second);
  if (!parsed.is_object() || !parsed.contains("step") || !parsed["step"].is_number_integer())
    fail("'{}' has a damaged training state", file.path().string());
  return parsed["step"];
}

// The checksum of a single file is compared whether or not it seems to have one: damage may hide it.
SafetensorsFile verified_file(const fs::path& path) {
  SafetensorsFile file(path);
  file.verify_checksum();
  return file;
}

SafetensorsFile newest_file(const RunView& run, std::vector<std::string>& warnings) {
  if (!run.exists() && run.checkpoint_steps().empty())
    fail("'{}' holds no run: there is no config.toml", run.path().string());
  CheckpointSearch search = run.newest_checkpoint();
  if (!search.newest)
    fail("'{}' holds no checkpoint{}{}", run.path().string(),
         search.warnings.empty() ? " yet" : " that is whole: ", fmt::join(search.warnings, "; "));
  for (const std::string& why : search.warnings)
    warnings.push_back(fmt::format("{}; the checkpoint of step {} is used", why, search.newest->step));
  return std::move(search.newest->file);
}

// Files that have changed since the run began may make other tokens of the same text.
void warn_of_other_data(const RunView& run, const RunConfig& config, std::vector<std::string>& warnings) {
  const DataRecord before = parse_data_record(run.data(), run.data_path().string());
  DataRecord now;
  for (const auto& [path, print] : before.files) add_fingerprint(now, path);
  if (!before.tokenizer.empty() && kind_of(run.tokenizer_path()) == PathKind::file &&
      config.data.tokenizer_path.empty())
    now.tokenizer = fingerprint_file(run.tokenizer_path()).hash;
  if (const auto difference = data_difference(before, now))
    warnings.push_back(
        fmt::format("the data have changed since the run in '{}' began: {}", run.path().string(), *difference));
}

}  // namespace

TrainedRun::TrainedRun(const fs::path& path, const SchemeLibrary& others) {
  const PathKind kind = kind_of(path);
  if (kind == PathKind::nothing) fail("there is no run '{}'", path.string());
  const RunView run(kind == PathKind::folder ? path : fs::absolute(path).parent_path().parent_path());
  file_ = std::make_shared<const SafetensorsFile>(kind == PathKind::folder ? newest_file(run, warnings_)
                                                                           : verified_file(path));
  const auto config = file_->metadata().find("norma.config");
  if (config == file_->metadata().end())
    fail("'{}' does not say what model its weights belong to: its metadata have no norma.config",
         file_->path().string());
  config_ = parse_config(config->second, file_->path().string(), library_of_run(run.path(), others));
  step_ = stored_step(*file_);
  members_ = static_cast<int>(member_configs(config_).size());
  warn_of_other_data(run, config_, warnings_);
  config_.data = stored_data(config_.data, run.path());
}

std::span<const std::byte> TrainedRun::bytes(const std::string& tensor, int member) const {
  return file_->bytes(checkpoint_name(tensor, member, members_));
}

bool TrainedRun::holds(const std::string& tensor, int member) const {
  return file_->contains(checkpoint_name(tensor, member, members_));
}

std::vector<float> TrainedRun::to_f32(const std::string& tensor, int member) const {
  return file_->to_f32(checkpoint_name(tensor, member, members_));
}

CheckpointSearch checkpoint_to_resume(const RunView& run, std::int64_t checkpoint_every) {
  CheckpointSearch search = run.newest_checkpoint();
  if (search.newest) return search;
  std::string missing = fmt::format("{}", fmt::join(search.warnings, "; "));
  if (missing.empty() && kind_of(run.metrics_path()) == PathKind::file) {
    // The first step is always recorded, and nothing is recorded behind a checkpoint before that is on disk.
    const std::vector<MetricRecord> records = read_metrics(run.metrics_path());
    if (records.empty()) return search;
    const std::int64_t first = records.front().step, last = records.back().step;
    const bool had_one = first > 1 || (checkpoint_every > 0 && last > checkpoint_every);
    if (had_one)
      missing = fmt::format("there is none in '{}', though metrics.jsonl goes to step {}",
                            run.checkpoints_path().string(), last);
  }
  if (!missing.empty())
    fail("'{}' holds a run that cannot go on: no checkpoint can be read: {}; move it away or give another --out",
         run.path().string(), missing);
  return search;
}

DataConfig stored_data(DataConfig data, const fs::path& run) {
  const fs::path model = RunView(run).tokenizer_path();
  const bool trains = data.tokenizer == "sentencepiece" && data.tokenizer_path.empty();
  if (trains && RunView(run).exists() && kind_of(model) == PathKind::file) data.tokenizer_path = model.string();
  return data;
}

}  // namespace norma
