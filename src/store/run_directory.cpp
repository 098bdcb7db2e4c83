#include "norma/store/run_directory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <utility>

#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/store/atomic_file.h"
#include "norma/version.h"
#include "store/directory.h"
#include "store/file_error.h"
#include "store/run_lock.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDone = "DONE";
constexpr std::string_view kStepKey = "norma.step";
constexpr std::string_view kVersionKey = "norma.version";

std::string checkpoint_name(std::int64_t step) { return fmt::format("step-{:08}.safetensors", step); }

std::optional<std::int64_t> step_of(const std::string& name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return {};
  std::int64_t step = -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return step >= 0 && name == checkpoint_name(step) ? std::optional(step) : std::nullopt;
}

// A directory in which a run may begin: empty, or with the leftovers of a beginning that was killed. The configuration
// is written last, so a directory without one never was a run.
void require_vacant(const fs::path& path) {
  if (RunView(path).exists()) fail("'{}' already holds a run; resume it or choose another directory", path.string());
  static const std::set<std::string> beginnings = {kLockName, "environment.json", "scheme.toml", "checkpoints"};
  for (const std::string& name : names_in(path)) {
    const bool ours = is_stale_temporary(name) || beginnings.contains(name);
    if (!ours) fail("'{}' is not empty: it holds '{}'; a run needs a directory of its own", path.string(), name);
  }
  const fs::path checkpoints = path / "checkpoints";
  if (fs::is_directory(checkpoints) && !names_in(checkpoints).empty())
    fail("'{}' holds checkpoints but no config.toml; a run needs a directory of its own", path.string());
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

}  // namespace

fs::path RunView::checkpoint_path(std::int64_t step) const { return checkpoints_path() / checkpoint_name(step); }

bool RunView::exists() const { return fs::is_regular_file(config_path()); }
bool RunView::is_done() const { return fs::exists(path_ / kDone); }

std::string RunView::config() const {
  if (!exists()) fail("'{}' holds no run: there is no config.toml", path_.string());
  return read_text(config_path());
}

std::string RunView::scheme() const { return fs::exists(scheme_path()) ? read_text(scheme_path()) : ""; }
std::string RunView::environment() const { return read_text(environment_path()); }
std::string RunView::result() const { return read_text(result_path()); }

std::vector<std::int64_t> RunView::checkpoint_steps() const {
  std::vector<std::int64_t> steps;
  if (!fs::is_directory(checkpoints_path())) return steps;
  for (const std::string& name : names_in(checkpoints_path())) {
    if (const std::optional<std::int64_t> step = step_of(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

CheckpointSearch RunView::newest_checkpoint() const {
  CheckpointSearch search;
  const std::vector<std::int64_t> steps = checkpoint_steps();
  for (auto step = steps.rbegin(); step != steps.rend() && !search.newest; ++step) {
    try {
      SafetensorsFile file(checkpoint_path(*step));
      file.verify_checksum();
      const auto stored = file.metadata().find(kStepKey);
      if (stored == file.metadata().end() || stored->second != std::to_string(*step))
        fail("'{}' is not the checkpoint of step {}: it says {}", file.path().string(), *step,
             stored == file.metadata().end() ? "no step" : stored->second);
      search.newest = Checkpoint{*step, std::move(file)};
    } catch (const Error& error) {
      search.warnings.emplace_back(error.what());
    }
  }
  return search;
}

RunDirectory::RunDirectory(RunView view, int lock, Beginning beginning)
    : RunView(std::move(view)), lock_(lock), beginning_(beginning) {}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : RunView(std::move(other)), lock_(std::exchange(other.lock_, -1)), beginning_(other.beginning_) {}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

RunDirectory RunDirectory::create(const fs::path& path, std::string_view config, std::string_view environment,
                                  std::string_view scheme) {
  make_directory(path);
  require_vacant(path);  // before the lock, which would leave a file in a directory that is not ours
  RunDirectory run(RunView(path), lock_run(path), Beginning::fresh);
  require_vacant(path);
  remove_stale_temporaries(path);
  make_directory(run.checkpoints_path());
  write_atomically(run.environment_path(), environment);
  // A beginning that was killed may have left the scheme of another run.
  if (::unlink(run.scheme_path().c_str()) != 0 && errno != ENOENT)
    fail_with_errno("remove the scheme", run.scheme_path(), errno);
  if (!scheme.empty()) write_atomically(run.scheme_path(), scheme);
  write_atomically(run.config_path(), config);
  return run;
}

RunDirectory RunDirectory::resume(const fs::path& path) {
  require_resumable(RunView(path));
  RunDirectory run(RunView(path), lock_run(path), Beginning::resumed);
  require_resumable(run);  // another process may have finished it meanwhile
  make_directory(run.checkpoints_path());
  remove_stale_temporaries(path);
  remove_stale_temporaries(run.checkpoints_path());
  return run;
}

MetricsLog RunDirectory::open_metrics(std::int64_t after_step, FlushPolicy policy) const {
  return MetricsLog::resume(metrics_path(), after_step, policy);
}

EventWriter RunDirectory::open_events(std::int64_t after_step, FlushPolicy policy) const {
  const bool resumed = beginning_ == Beginning::resumed;
  return EventWriter(path(), resumed ? std::optional(after_step + 1) : std::nullopt, policy);
}

void RunDirectory::save_checkpoint(std::int64_t step, std::span<const TensorData> tensors, Metadata metadata,
                                   Retention retention) {
  if (step < 0) fail("a checkpoint cannot be of step {}", step);
  write_safetensors(checkpoint_path(step), tensors, checkpoint_metadata(step, std::move(metadata)));
  retire_checkpoints(step, retention);
}

SafetensorsWriter RunDirectory::begin_checkpoint(std::int64_t step, std::vector<TensorEntry> entries,
                                                 Metadata metadata) const {
  if (step < 0) fail("a checkpoint cannot be of step {}", step);
  return {checkpoint_path(step), std::move(entries), checkpoint_metadata(step, std::move(metadata))};
}

void RunDirectory::retire_checkpoints(std::int64_t newest_step, Retention retention) const {
  std::vector<std::int64_t> steps = checkpoint_steps();
  std::reverse(steps.begin(), steps.end());
  int kept = 0;
  for (const std::int64_t step : steps) {
    const bool landmark = retention.keep_every > 0 && step % retention.keep_every == 0;
    const bool recent = step == newest_step || kept < retention.keep_last;
    if (step <= newest_step) ++kept;
    if (step <= newest_step && (recent || landmark)) continue;
    const fs::path path = checkpoint_path(step);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_with_errno("remove the checkpoint", path, errno);
  }
}

void RunDirectory::finish(std::string_view result) {
  write_atomically(result_path(), result);
  write_atomically(path() / kDone, "");
}

}  // namespace norma
