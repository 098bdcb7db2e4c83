// The main job: schemes compared by what they are at init, how they train at their own best rate, and what they make
// of their depth; a verdict for each and advice, all from evidence of the same study.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "norma/lab/results.h"
#include "norma/train/config.h"

namespace norma {

struct StudyConfig {
  std::vector<SchemeChoice> schemes;
  std::vector<std::int64_t> depths;  // of the analyses at init
  RunConfig base;                    // of every training run; its model says depth and width
  std::vector<double> rates;         // peak learning rates
  // A scheme whose best rate is the smallest or largest tried gets one more beyond it, at most so many times; 0: never.
  int extra_rates = 2;
  std::vector<std::int64_t> warmups;  // steps; 0: none
  std::vector<std::int64_t> seeds;
  bool inspect = true, train = true, depth_use = true;

  StudyConfig();  // the default study: minutes on two cores, no files
};

// What a study tells whoever watches it.
class StudyObserver {
 public:
  virtual ~StudyObserver() = default;
  // A part of the study, the share of that part that is done, and what is at hand.
  virtual void progressed(std::string_view /*part*/, double /*done*/, std::string_view /*what*/) {}
  virtual void said(const std::string& /*line*/) {}
};

struct StudyRequest {
  StudyConfig config;
  std::filesystem::path directory;  // takes results.json and the runs
  std::vector<std::string> command_line = {};
};

struct StudyResult {
  std::string results_json;
  bool interrupted = false;
  bool finished_before = false;  // the results are those of the same study, which had ended here
};

// Runs what has not been run yet in this directory; writes results.json. Throws Error for whatever is wrong with the
// request before anything is computed.
StudyResult run_study(const StudyRequest& request, StudyObserver& observer, const std::atomic<bool>& stop);

// The table that a study ends with on a terminal.
std::string study_table(const Results& results);

}  // namespace norma
