// What a study does next with the budget that is left: longer races while curves fall, then the final comparison, long
// runs for what stayed at guessing level, more seeds for ties. A pure function of what is known; docs/study.md has the
// rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/study/rounds.h"
#include "lab/study/verdict.h"
#include "norma/lab/statistics.h"

namespace norma {

// A run of a round, as far as decisions go.
struct RoundRun {
  std::size_t scheme = 0;
  double lr = 0;
  std::int64_t warmup = 0, seed = 0;
  bool diverged = false, learned = false;
  double loss = 0;  // on held-out data for tuning; infinite after divergence
};

struct PlayedRound {
  Round round;
  std::vector<RoundRun> runs = {};
};

// All seeds of one setting in one round.
struct RacedSetting {
  double lr = 0;
  std::int64_t warmup = 0;
  double loss = 0;
  bool trains = false;    // no seed diverged or stayed at guessing level
  bool diverged = false;  // some seed did
};
std::vector<RacedSetting> settings_of(const PlayedRound& played, std::size_t scheme);

struct StudyState {
  std::vector<SchemeEvidence> schemes;  // their cells are those of the map
  std::int64_t map_steps = 0;
  std::vector<std::int64_t> tuning_seeds;
  std::vector<PlayedRound> played = {};
  std::vector<LossTable> finals = {};  // by scheme, empty where it was in none
  double tokens_per_step = 1;          // of one run
};

struct PlannerRules {
  int first_settings = 4, later_settings = 2;  // of each scheme in a race
  int final_seeds = 5, least_final_seeds = 2, most_final_seeds = 40;
  double flat = 0.02;  // nats: a curve that fell less since the round before has flattened
  double tied = 0.02;  // nats between settings that are as good as each other
  double same = 0.01;  // nats: schemes whose difference is surely smaller need no more seeds
  double least_growth = 1.25;
  std::int64_t long_steps = 3000;
  double long_factor = 4;  // times the final length, at least
  double alpha = 0.05;
};

// Nothing: all is decided, or the budget does not reach for what is not. `tokens_left` goes into the round.
std::optional<Round> next_round(const StudyState& state, double tokens_left, const PlannerRules& rules = {});

// Long enough to say of what stayed at guessing level that it does not train.
bool is_long(const Round& round);

// How a scheme stands after all rounds.
Training training_after(const StudyState& state, std::size_t scheme);
// Of a long run for a scheme at guessing level, in tokens.
double tokens_of_long_run(const StudyState& state, const PlannerRules& rules = {});

// The length of the last race or of the map, and the setting of each scheme there that the final takes: within
// `tied` of its best the one with margin. Nothing where none trains.
std::int64_t raced_steps(const StudyState& state);
std::optional<RacedSetting> chosen_setting(const StudyState& state, std::size_t scheme, const PlannerRules& rules = {});

// Pairs of schemes that have finals, with indices into `state.schemes`, at the level of the last look.
std::vector<PairedDifference> final_pairs(const StudyState& state, const PlannerRules& rules = {});

// The next larger rate of the map trains too, with the same warmup.
bool has_margin(const SchemeEvidence& evidence, double lr, std::int64_t warmup);

// Whether the best loss of a scheme fell by more than `flat` from the round before the last race to it.
bool still_falls(const StudyState& state, std::size_t scheme, const PlannerRules& rules = {});

}  // namespace norma
