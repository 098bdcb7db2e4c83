#include "norma/store/run_directory.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/store/atomic_file.h"
#include "norma/store/file_fingerprint.h"
#include "norma/version.h"
#include "store/run_files.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepKey = "norma.step";
constexpr std::string_view kVersionKey = "norma.version";

// Before the lock, which would leave a file in a directory that is not ours.
void require_ours(const Folder& folder) {
  for (const std::string& name : folder.names()) {
    if (!is_run_file(name) && name != kCheckpointsName)
      fail("'{}' is not empty: it holds '{}'; a run needs a directory of its own", folder.path().string(), name);
  }
}

// A directory in which a run may begin: empty, or with the leftovers of a beginning that was killed. The configuration
// is written last, so a directory without one never was a run.
void require_vacant(const Folder& folder) {
  if (folder.has_file(kConfigName))
    fail("'{}' already holds a run; resume it or choose another directory", folder.path().string());
  for (const std::string& name : folder.names()) {
    if (!is_beginning(name))
      fail(
          "'{}' is not empty: it holds '{}' of a run whose config.toml is missing; put that back, or choose another "
          "directory",
          folder.path().string(), name);
  }
  if (folder.has_folder(kCheckpointsName) && !folder.sub(kCheckpointsName).names().empty())
    fail("'{}' holds checkpoints but no config.toml; a run needs a directory of its own", folder.path().string());
}

void require_resumable(const RunView& run) {
  if (!run.exists()) fail("'{}' holds no run: there is no config.toml", run.path().string());
  if (run.is_done()) fail("the run in '{}' is already finished (DONE)", run.path().string());
}

Metadata checkpoint_metadata(std::int64_t step, Metadata metadata) {
  metadata.insert_or_assign(std::string(kStepKey), std::to_string(step));
  metadata.insert_or_assign(std::string(kVersionKey), NORMA_VERSION);
  return metadata;
}

std::string text_or_nothing(const fs::path& path) { return kind_of(path) == PathKind::nothing ? "" : read_text(path); }

std::vector<std::int64_t> steps_among(const std::vector<std::string>& names) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names) {
    if (const std::optional<std::int64_t> step = checkpoint_file_step(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace

fs::path RunView::checkpoint_path(std::int64_t step) const { return checkpoints_path() / checkpoint_file_name(step); }

bool RunView::exists() const { return kind_of(config_path()) == PathKind::file; }
bool RunView::is_done() const { return kind_of(path_ / kDoneName) != PathKind::nothing; }

std::string RunView::config() const {
  if (!exists()) fail("'{}' holds no run: there is no config.toml", path_.string());
  return read_text(config_path());
}

std::string RunView::scheme() const { return text_or_nothing(scheme_path()); }
std::string RunView::data() const { return text_or_nothing(data_path()); }
std::string RunView::environment() const { return read_text(environment_path()); }
std::string RunView::result() const { return read_text(result_path()); }

void RunView::verify_end() const {
  std::istringstream sums(read_text(path_ / kDoneName));  // empty: a run of an earlier version
  for (std::string hash, name; sums >> hash >> name;) {
    if (name != kResultName && name != kMetricsName)
      fail("'{}' is damaged: it speaks of '{}'", (path_ / kDoneName).string(), name);
    if (fingerprint_file(path_ / name).hash != hash)
      fail(
          "'{}' is damaged: it is not what '{}' says that it was when the run ended; put it back, or remove the run to "
          "train it again",
          (path_ / name).string(), (path_ / kDoneName).string());
  }
}

std::vector<std::int64_t> RunView::checkpoint_steps() const {
  if (kind_of(checkpoints_path()) != PathKind::folder) return {};
  return steps_among(Folder(checkpoints_path()).names());
}

Checkpoint RunView::checkpoint(std::int64_t step) const {
  SafetensorsFile file(checkpoint_path(step));
  file.verify_checksum();
  const auto stored = file.metadata().find(kStepKey);
  if (stored == file.metadata().end() || stored->second != std::to_string(step))
    fail("'{}' is not the checkpoint of step {}: it says {}", file.path().string(), step,
         stored == file.metadata().end() ? "no step" : stored->second);
  return {step, std::move(file)};
}

CheckpointSearch RunView::newest_checkpoint() const {
  CheckpointSearch search;
  const std::vector<std::int64_t> steps = checkpoint_steps();
  for (auto step = steps.rbegin(); step != steps.rend() && !search.newest; ++step) {
    try {
      search.newest = checkpoint(*step);
    } catch (const Error& error) {
      search.warnings.emplace_back(error.what());
    }
  }
  return search;
}

RunDirectory::RunDirectory(const Folder& folder, DirectoryLock lock, Start start)
    : RunView(folder.path()),
      folder_(folder),
      lock_(std::move(lock)),
      checkpoints_(folder.make_sub(kCheckpointsName)),
      start_(start) {
  remove_stale_temporaries(folder_);
  remove_stale_temporaries(checkpoints_);
}

RunDirectory RunDirectory::create(const Folder& folder, const RunBeginning& beginning) {
  require_ours(folder);
  DirectoryLock lock(folder);
  require_vacant(folder);
  RunDirectory run(folder, std::move(lock), Start::fresh);
  write_atomically(folder, kEnvironmentName, beginning.environment);
  // A beginning that was killed may have left those of another run.
  folder.remove(kSchemeName);
  folder.remove(kDataName);
  if (!beginning.scheme.empty()) write_atomically(folder, kSchemeName, beginning.scheme);
  if (!beginning.data.empty()) write_atomically(folder, kDataName, beginning.data);
  write_atomically(folder, kConfigName, beginning.config);
  return run;
}

RunDirectory RunDirectory::create(const fs::path& path, std::string_view config, std::string_view environment,
                                  std::string_view scheme) {
  return create(Folder::make(path), {.config = config, .environment = environment, .scheme = scheme});
}

RunDirectory RunDirectory::resume(const Folder& folder) {
  const RunView view(folder.path());
  require_resumable(view);
  DirectoryLock lock(folder);
  require_resumable(view);  // another process may have finished it meanwhile
  return {folder, std::move(lock), Start::resumed};
}

RunDirectory RunDirectory::resume(const fs::path& path) {
  require_resumable(RunView(path));
  return resume(Folder(path));
}

MetricsLog RunDirectory::open_metrics(std::int64_t after_step, FlushPolicy policy,
                                      std::span<const std::int64_t> expected) const {
  return MetricsLog::resume(folder_, kMetricsName, after_step, policy, expected);
}

EventWriter RunDirectory::open_events(std::int64_t after_step, FlushPolicy policy) const {
  const bool resumed = start_ == Start::resumed;
  return EventWriter(folder_, resumed ? std::optional(after_step + 1) : std::nullopt, policy);
}

void RunDirectory::save_checkpoint(std::int64_t step, std::span<const TensorData> tensors, Metadata metadata,
                                   Retention retention) {
  if (step < 0) fail("a checkpoint cannot be of step {}", step);
  write_safetensors(AtomicFile(checkpoints_, checkpoint_file_name(step)), tensors,
                    checkpoint_metadata(step, std::move(metadata)));
  retire_checkpoints(step, retention);
}

SafetensorsWriter RunDirectory::begin_checkpoint(std::int64_t step, std::vector<TensorEntry> entries,
                                                 Metadata metadata) const {
  if (step < 0) fail("a checkpoint cannot be of step {}", step);
  return {AtomicFile(checkpoints_, checkpoint_file_name(step)), std::move(entries),
          checkpoint_metadata(step, std::move(metadata))};
}

void RunDirectory::retire_checkpoints(std::int64_t newest_step, Retention retention) const {
  std::vector<std::int64_t> steps = steps_among(checkpoints_.names());
  std::reverse(steps.begin(), steps.end());
  int kept = 0;
  for (const std::int64_t step : steps) {
    const bool landmark = retention.keep_every > 0 && step % retention.keep_every == 0;
    const bool recent = step == newest_step || kept < retention.keep_last;
    if (step <= newest_step) ++kept;
    if (step <= newest_step && (recent || landmark)) continue;
    checkpoints_.remove(checkpoint_file_name(step));
  }
}

void RunDirectory::remove_checkpoints() const {
  for (const std::int64_t step : steps_among(checkpoints_.names())) checkpoints_.remove(checkpoint_file_name(step));
}

void RunDirectory::finish(std::string_view result) {
  checkpoints_.sync();  // after the loss of power no checkpoint that was dropped comes back
  write_atomically(folder_, kResultName, result);
  std::string sums = fmt::format("{} {}\n", hash_text(result), kResultName);
  if (folder_.has_file(kMetricsName))
    sums += fmt::format("{} {}\n", fingerprint_file(metrics_path()).hash, kMetricsName);
  write_atomically(folder_, kDoneName, sums);
}

void reopen_run(const Folder& run) {
  run.remove(kDoneName);
  run.remove(kResultName);
}

}  // namespace norma
