// rounds.json: what a study decided, before it was done, and what that took. A study that goes on repeats it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "norma/lab/course.h"
#include "norma/store/folder.h"

namespace norma {

// One scheme at one setting, with some seeds.
struct RoundEntry {
  std::size_t scheme = 0;  // index
  double lr = 0;
  std::int64_t warmup = 0;
  std::vector<std::int64_t> seeds = {};
};

struct Round {
  Stage stage = Stage::race;
  std::int64_t steps = 0;
  std::vector<RoundEntry> entries = {};
  std::string why = {};
  double tokens_left = 0;  // before it, as the budget was reckoned then
  // Once it has ended: what was trained by the process that ended it, and how long that took.
  bool ended = false;
  bool cut = false;  // the time of the study was up before all of its runs had ended
  double seconds = 0, tokens_trained = 0;

  std::int64_t runs() const;
  double member_steps() const { return static_cast<double>(runs()) * static_cast<double>(steps); }
  std::string folder() const;  // "race-200"
};

// What the stages before the first round took.
struct StudyAccount {
  double seconds = 0;           // of all
  double training_seconds = 0;  // of the map
  double tokens_trained = 0;
};

struct StudyLog {
  std::string budget;  // another one decides anew
  StudyAccount before = {};
  std::vector<Round> rounds = {};
};

inline constexpr const char* kRoundsFile = "rounds.json";

// Schemes are named in the file. Empty where there is none, or one of another budget. Throws Error when it is damaged.
StudyLog read_rounds(const Folder& study, const std::string& budget, const std::vector<std::string>& schemes);
void write_rounds(const Folder& study, const StudyLog& log, const std::vector<std::string>& schemes);

}  // namespace norma
