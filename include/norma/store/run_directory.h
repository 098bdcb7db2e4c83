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

#include "norma/store/directory_lock.h"
#include "norma/store/folder.h"
#include "norma/store/metrics.h"
#include "norma/store/safetensors.h"
#include "norma/store/safetensors_writer.h"
#include "norma/store/tensorboard.h"

namespace norma {

// A checkpoint whose checksum and step were compared.
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

// Pages that others write into a run directory: they belong to the run and go with it.
inline constexpr const char *kReportName = "report.html", *kInspectionName = "inspect.html";

// A run directory to be read; another process may be writing to it.
class RunView {
 public:
  explicit RunView(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config_path() const { return path_ / "config.toml"; }
  std::filesystem::path scheme_path() const { return path_ / "scheme.toml"; }
  std::filesystem::path environment_path() const { return path_ / "environment.json"; }
  std::filesystem::path data_path() const { return path_ / "data.json"; }
  std::filesystem::path tokenizer_path() const { return path_ / "tokenizer.model"; }
  std::filesystem::path vocabulary_path() const { return path_ / "vocabulary.json"; }
  std::filesystem::path metrics_path() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoints_path() const { return path_ / "checkpoints"; }
  std::filesystem::path checkpoint_path(std::int64_t step) const;
  std::filesystem::path result_path() const { return path_ / "result.json"; }

  bool exists() const;  // holds a configuration
  bool is_done() const;
  // Throws Error when result.json or metrics.jsonl of a finished run are not what they were when it ended.
  void verify_end() const;
  std::string config() const;       // text of config.toml; throws Error when the directory holds no run
  std::string scheme() const;       // text of scheme.toml; empty: the run keeps none
  std::string data() const;         // text of data.json; empty: the run reads no files, or keeps no record of them
  std::string environment() const;  // text of environment.json
  std::string result() const;       // text of result.json; throws Error before the end of the run

  std::vector<std::int64_t> checkpoint_steps() const;  // ascending, whole or not
  Checkpoint checkpoint(std::int64_t step) const;      // throws Error when it is missing, damaged or of another step
  CheckpointSearch newest_checkpoint() const;          // reads whole files to compare checksums

 private:
  std::filesystem::path path_;
};

// What a run is when it begins. Without a scheme or data of its own it keeps none.
struct RunBeginning {
  std::string_view config, environment, scheme = {}, data = {};
};

// A run directory to be written, locked against every other writer until this object goes. It is held open: no link in
// it is followed.
class RunDirectory : public RunView {
 public:
  // Begins a run. Throws Error when the directory holds a run already or anything that is not ours, or with the process
  // id of who has it open.
  static RunDirectory create(const Folder& folder, const RunBeginning& beginning);
  static RunDirectory create(const std::filesystem::path& path, std::string_view config, std::string_view environment,
                             std::string_view scheme = {});

  // Takes up a run. Throws Error when there is none, when it is finished, or with the process id of who has it open.
  // Leftovers of a killed process are removed.
  static RunDirectory resume(const Folder& folder);
  static RunDirectory resume(const std::filesystem::path& path);

  const Folder& folder() const { return folder_; }

  // The logs of a run whose last step was `after_step`; -1 before the first. What a log says of later steps is void.
  // Metrics without a record of an `expected` step are an Error.
  MetricsLog open_metrics(std::int64_t after_step, FlushPolicy policy = {},
                          std::span<const std::int64_t> expected = {}) const;
  EventWriter open_events(std::int64_t after_step, FlushPolicy policy = {}) const;

  // Writes a checkpoint, then drops those that `retention` does not keep, and those of later steps: a run that writes
  // step 15 has left behind whatever it once wrote at step 20. On Error the earlier checkpoints are as they were.
  void save_checkpoint(std::int64_t step, std::span<const TensorData> tensors, Metadata metadata = {},
                       Retention retention = {});

  // The same in two parts, for tensors that come in pieces: commit the writer, then retire.
  SafetensorsWriter begin_checkpoint(std::int64_t step, std::vector<TensorEntry> entries, Metadata metadata = {}) const;
  void retire_checkpoints(std::int64_t newest_step, Retention retention) const;

  void remove_checkpoints() const;  // all of them

  // Writes result.json, then DONE, which says what it and metrics.jsonl hash to.
  void finish(std::string_view result);

 private:
  enum class Start : std::uint8_t { fresh, resumed };

  RunDirectory(const Folder& folder, DirectoryLock lock, Start start);

  Folder folder_;
  DirectoryLock lock_;
  Folder checkpoints_;
  Start start_;
};

// Takes DONE and result.json from a finished run, so that it can be resumed and finished again.
void reopen_run(const Folder& run);

// Removes the run in folder `name` of `parent`, and the folder when nothing else is in it: files that norma does not
// write stay, and no link is followed. False when something is left.
bool remove_run(const Folder& parent, const std::string& name);

}  // namespace norma
