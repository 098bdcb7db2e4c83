// One run in one directory, from its start or its last checkpoint to its end.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "norma/core/error.h"
#include "norma/store/run_directory.h"
#include "norma/train/cohort.h"
#include "norma/train/judge.h"
#include "norma/train/result.h"

namespace norma {

// What a run tells whoever watches it. All calls come from the thread that runs it.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void started(const Cohort& /*cohort*/, const Source& /*source*/) {}
  virtual void warned(const std::string& /*what*/) {}
  // After every step; `seconds` of training in this process.
  virtual void stepped(const Cohort& /*cohort*/, double /*seconds*/) {}
  virtual void happened(const MemberEvent& /*event*/) {}
  virtual void evaluated(const Cohort& /*cohort*/) {}
  virtual void saved(std::int64_t /*step*/) {}
};

struct RunRequest {
  RunConfig config;
  std::filesystem::path directory;
  std::vector<std::string> command_line = {};  // for the record
  std::int64_t recorded_before = 0;            // the records up to this step are kept elsewhere
  // How many threads the run may use now, asked before every step; empty: as the configuration says. The bits do not
  // depend on it.
  std::function<int()> threads = nullptr;
  // A model that sees what it is to predict is trained all the same, whatever train.leaks says: its result names it.
  bool names_leaks = false;
  bool weights = true;  // kept at the end; without them a run that has ended is its records and its result
  bool scores = true;   // at the end every member is judged by itself (judge.h), beside its evaluation
};

// The directory holds a run of another configuration or scheme.
class OtherRunError : public Error {
 public:
  using Error::Error;
};

enum class RunEnd { finished, interrupted, finished_before };

// Trains until the last step, until every member has diverged, or until `stop` becomes true (then a checkpoint is
// written first). A directory that holds the same run is resumed from its newest whole checkpoint, and left as it is
// when that run has ended (`finished_before`). One that holds another run is refused, and so is a run whose data or
// records of earlier steps are no longer what they were. Throws Error; whatever was on disk before stays readable.
RunEnd run_training(const RunRequest& request, RunObserver& observer, const std::atomic<bool>& stop);

// The steps up to `last` of which metrics.jsonl has a record of every member that had not diverged before, from behind
// `first` on: the first step, every train.log_every, and the last one.
std::vector<std::int64_t> recorded_steps(const TrainConfig& train, std::int64_t first, std::int64_t last);

}  // namespace norma
