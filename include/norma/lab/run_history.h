// A run as its directory tells it: configuration, result, and what was recorded of every member, step by step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/lab/sweep_outcome.h"
#include "norma/schemes/library.h"
#include "norma/train/cohort.h"
#include "norma/train/config.h"
#include "norma/train/result.h"

namespace norma {

// What metrics.jsonl says of one step. NaN where it says nothing.
struct StepRecord {
  std::int64_t step = 0;
  double loss = 0, gradient_norm = 0, lr = 0, tokens_per_second = 0;
  std::vector<ProbeValue> probes = {};  // in the order of the record, which is that of the computation
};

struct RecordedEvent {
  std::int64_t step = 0;
  std::string what, why;
};

struct MemberHistory {
  int member = 0;
  TrainConfig settings = {};  // its own
  std::vector<StepRecord> steps = {};
  LossCurve evaluations = {};
  std::vector<RecordedEvent> events = {};
  std::optional<MemberResult> result = {};  // of a run that has ended

  LossCurve curve() const;  // of training
};

struct RunHistory {
  std::filesystem::path path;
  RunConfig config = {};
  std::optional<RunResult> result = {};  // none: it has not ended
  std::vector<MemberHistory> members = {};
};

// Throws Error when there is no run at `path` (a sweep, a study or something else is named for what it is), or when its
// files are damaged. The run's own scheme comes before those of `others`.
RunHistory read_history(const std::filesystem::path& path, const SchemeLibrary& others = {});

// Throws Error, as read_history does, when `path` is not the directory of a run.
void require_run(const std::filesystem::path& path);

}  // namespace norma
