// One run, one directory: configuration, environment, metrics, events, checkpoints and result. docs/runs.md shows the
// layout and lists what is promised.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/store/metrics.h"
#include "norma/store/safetensors.h"
#include "norma/store/safetensors_writer.h"
#include "norma/store/tensorboard.h"

namespace norma {

struct Checkpoint {
  std::int64_t step = 0;
  SafetensorsFile file;
};

struct CheckpointSearch {
  std::optional<Checkpoint> newest;   // that is whole
  std::vector<std::string> warnings;  // why each newer one was passed over
};

// Which checkpoints stay when a new one has been written. The new one always does.
struct Retention {
  int keep_last = 2;
  std::int64_t keep_every = 0;  // steps that are a multiple of this stay for ever; 0: none
};

// A run directory to be read; another process may be writing to it.
class RunView {
 public:
  explicit RunView(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config_path() const { return path_ / "config.toml"; }
  std::filesystem::path scheme_path() const { return path_ / "scheme.toml"; }
  std::filesystem::path environment_path() const { return path_ / "environment.json"; }
  std::filesystem::path metrics_path() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoints_path() const { return path_ / "checkpoints"; }
  std::filesystem::path checkpoint_path(std::int64_t step) const;
  std::filesystem::path result_path() const { return path_ / "result.json"; }

  bool exists() const;  // holds a configuration
  bool is_done() const;
  std::string config() const;       // text of config.toml; throws Error when the directory holds no run
  std::string scheme() const;       // text of scheme.toml; empty: the run keeps none
  std::string environment() const;  // text of environment.json
  std::string result() const;       // text of result.json; throws Error before the end of the run

  std::vector<std::int64_t> checkpoint_steps() const;  // ascending, whole or not
  CheckpointSearch newest_checkpoint() const;          // reads whole files to compare checksums

 private:
  std::filesystem::path path_;
};

// A run directory to be written, locked against every other writer until this object goes.
class RunDirectory : public RunView {
 public:
  // Begins a run, with the scheme of its model where that is more than the configuration says. Throws Error when the
  // directory holds a run already or anything that is not ours.
  static RunDirectory create(const std::filesystem::path& path, std::string_view config, std::string_view environment,
                             std::string_view scheme = {});

  // Takes up a run. Throws Error when there is none, when it is finished, or with the process id of who has it open.
  // Leftovers of a killed process are removed.
  static RunDirectory resume(const std::filesystem::path& path);

  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();

  // The logs of a run whose last step was `after_step`; -1 before the first. What a log says of later steps is void.
  MetricsLog open_metrics(std::int64_t after_step, FlushPolicy policy = {}) const;
  EventWriter open_events(std::int64_t after_step, FlushPolicy policy = {}) const;

  // Writes a checkpoint, then drops those that `retention` does not keep, and those of later steps: a run that writes
  // step 15 has left behind whatever it once wrote at step 20. On Error the earlier checkpoints are as they were.
  void save_checkpoint(std::int64_t step, std::span<const TensorData> tensors, Metadata metadata = {},
                       Retention retention = {});

  // The same in two parts, for tensors that come in pieces: commit the writer, then retire.
  SafetensorsWriter begin_checkpoint(std::int64_t step, std::vector<TensorEntry> entries, Metadata metadata = {}) const;
  void retire_checkpoints(std::int64_t newest_step, Retention retention) const;

  // Writes result.json, then DONE.
  void finish(std::string_view result);

 private:
  enum class Beginning : std::uint8_t { fresh, resumed };

  RunDirectory(RunView view, int lock, Beginning beginning);

  int lock_;
  Beginning beginning_;
};

}  // namespace norma
