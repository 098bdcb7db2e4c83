// Many runs from one description: a grid or a list over anything in the configuration, grouped into cohorts that train
// as one batched program. docs/sweeps.md shows the file, the directory and what is promised.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "norma/lab/sweep_outcome.h"
#include "norma/train/cohort.h"
#include "norma/train/config.h"

namespace norma {

// One key and its values as TOML text; the grid is the product of all axes.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};

// Keys and values that go together: one entry of a list.
using SweepPoint = std::vector<std::pair<std::string, std::string>>;

// Successive halving: at steps min_steps, min_steps eta, min_steps eta^2, ... the best 1/eta of the settings that share
// one program go on; the others stop there. All seeds of a setting share its fate.
struct HalvingConfig {
  std::int64_t eta = 3;
  std::int64_t min_steps = 100;
};

struct SweepConfig {
  RunConfig base = {};
  std::vector<SweepAxis> axes = {};
  std::vector<SweepPoint> points = {};  // each combined with every cell of the grid
  std::int64_t most_members = 0;        // of one cohort; 0: by cores, and in any case by memory
  std::optional<HalvingConfig> halving = {};
  SchemeLibrary schemes = {};  // what names on an axis mean
};

// Ordinary tables of a run and beside them
//   [sweep]
//   "model.scheme" = ["pre", "post"]
//   "train.lr" = [1e-4, 1e-3]
//   members = 8
//   halving = {eta = 3, min_steps = 100}
//   [[sweep.list]]
//   "model.layers" = 6
//   "model.width" = 128
// Throws Error naming key, value and what was expected.
SweepConfig parse_sweep(std::string_view toml, std::string_view origin, const SchemeLibrary& schemes = {});
SweepConfig read_sweep(const std::filesystem::path& path, const SchemeLibrary& schemes = {});
std::string print_sweep(const SweepConfig& config);

// "train.lr=[1e-4, 1e-3]" adds or replaces an axis, "train.lr=1e-4" sets the base; words need no quotes.
// "sweep.members=8" and "sweep.halving={eta = 3, min_steps = 100}" are understood too.
void override_sweep(SweepConfig& config, std::string_view assignment);

// Makes `key` an axis with these values (TOML text or bare words), in place of whatever varied it before.
void set_axis(SweepConfig& config, const std::string& key, std::vector<std::string> values);

// One run: its name, what tells it from the others, and its whole configuration.
struct SweepCell {
  std::string id;
  std::map<std::string, std::string> axes;
  RunConfig config;
};

// Every run of a sweep, the last axis fastest. Throws Error for an empty grid, one too large, a value that does not fit
// its key, and for two cells that are the same run.
std::vector<SweepCell> sweep_cells(const SweepConfig& config);

struct SweepProgress {
  int cohort = 0, cohorts = 0;       // counted from 1; with halving as far as is known
  std::int64_t runs = 0, ended = 0;  // of the whole sweep
  std::int64_t until = 0;            // step at which this cohort ends or pauses
  double share = 0;                  // of the work of the whole that is done
  double seconds = 0;                // of training in this process
  double seconds_left = 0;           // estimated; NaN while nothing is known
};

// What a sweep tells whoever watches it: one call at a time, though cohorts that train side by side call from threads
// of their own.
class SweepObserver {
 public:
  virtual ~SweepObserver() = default;
  // `ended` runs were found complete, others may be half done.
  virtual void planned(std::int64_t /*runs*/, std::int64_t /*ended*/, int /*cohorts*/) {}
  virtual void warned(const std::string& /*what*/) {}
  virtual void started(const SweepProgress& /*progress*/, const Cohort& /*cohort*/) {}
  virtual void stepped(const SweepProgress& /*progress*/, const Cohort& /*cohort*/) {}
  virtual void happened(const SweepCell& /*cell*/, const MemberEvent& /*event*/) {}
  virtual void ended(const RunOutcome& /*outcome*/) {}
};

enum class KeepWeights { yes, no };

struct SweepRequest {
  SweepConfig config;
  std::filesystem::path directory;
  std::vector<std::string> command_line = {};
  KeepWeights weights = KeepWeights::yes;  // whether the run directories keep their last checkpoint
  bool scores = true;                      // whether results have the scores of judge.h
  std::optional<std::chrono::steady_clock::time_point> until = {};  // it stops then as if it were asked to
};

struct SweepResult {
  std::vector<RunOutcome> outcomes;  // in the order of sweep_cells
  bool interrupted = false;          // by `stop` or at `until`; the same request goes on from there
  double seconds = 0;                // of training in this process
  bool finished_before = false;      // every run had ended before
};

// Trains every cell that has not ended yet. Killed at any moment, the same request goes on where it was: cohorts from
// their last checkpoint, finished runs not at all. Throws Error; what had ended before stays.
SweepResult run_sweep(const SweepRequest& request, SweepObserver& observer, const std::atomic<bool>& stop);

// The outcomes as they stand on disk, without training anything.
std::vector<RunOutcome> read_outcomes(const SweepConfig& config, const std::filesystem::path& directory);

}  // namespace norma
