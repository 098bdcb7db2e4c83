// The main job: schemes compared by what they are at init, how they train at their own best setting, and what they make
// of their depth; a verdict for each and advice, all from evidence of the same study. docs/study.md says how a budget
// becomes evidence.
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

// What a study may spend: wall time, or an amount of work, which makes it the same on every machine.
struct StudyBudget {
  enum class Unit { none, seconds, tokens, steps };
  Unit unit = Unit::none;  // none: short runs alone
  double amount = 0;       // tokens and steps of all runs together
};
StudyBudget parse_budget(std::string_view text);         // "3min", "1h", "2e9tokens", "40000steps", "0"; throws Error
std::string print_budget(const StudyBudget& budget);     // as parse_budget reads it
std::string describe_budget(const StudyBudget& budget);  // "3 min", "40000 steps"

struct StudyConfig {
  std::vector<SchemeChoice> schemes;
  std::vector<std::int64_t> depths;  // of the analyses at init
  RunConfig base;                    // of every short run; its model says depth and width
  std::vector<double> rates;         // peak learning rates
  // A scheme whose best rate is the smallest or largest tried gets one more beyond it, at most so many times; 0: never.
  int extra_rates = 2;
  std::vector<std::int64_t> warmups;  // steps; 0: none
  std::vector<std::int64_t> seeds;    // that settings are chosen with; the final comparison has others
  StudyBudget budget;
  bool beside_other_depths = false;  // one of several studies that share a budget; see study_depths.h
  bool inspect = true, train = true, depth_use = true;
  bool depth_use_whatever_it_takes = false;  // or as far as a fifth of a budget of time goes
  double depth_use_time = 1;                 // of that fifth
  // The model that the question is about, for the advice; 0: the one that is trained.
  std::int64_t asked_layers = 0, asked_width = 0;

  StudyConfig();  // the default study: three minutes, no files
};

// The default study of a family: its schemes, rates and depths, and sizes that suit its models.
StudyConfig default_study_of(const Family& family);

// What a GPU makes of three minutes: wider models on longer rows of a language of seven levels, on which depth pays, at
// each of `kDepthsOnGpu`.
StudyConfig default_study_on_gpu();
inline constexpr std::int64_t kDepthsOnGpu[] = {12, 48};

// What a study tells whoever watches it.
class StudyObserver {
 public:
  virtual ~StudyObserver() = default;
  // A part of the study, the share of that part that is done, and what is at hand.
  virtual void progressed(std::string_view /*part*/, double /*done*/, std::string_view /*what*/) {}
  // The share of a budget of tokens or steps that is used up; always before the call of progressed() that it goes with.
  virtual void spent(double /*share*/) {}
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
