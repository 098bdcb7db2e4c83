// Settings of a scheme by the length of its runs: what was tried, what was best, what runs on when runs get longer, and
// how fast losses still fall. docs/study.md has the rules.
#pragma once

#include <limits>
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
  bool guesses = false;  // ended at guessing level, not above it, or never moved
  double loss = 0;       // on held-out data for tuning; infinite after divergence
};

struct PlayedRound {
  Round round;
  std::vector<RoundRun> runs = {};
};

// All seeds of one setting at one length.
struct RacedSetting {
  double lr = 0;
  std::int64_t warmup = 0;
  double loss = 0;
  bool trains = false;    // no seed diverged or stayed at guessing level
  bool diverged = false;  // some seed did
};

struct StudyState {
  std::vector<SchemeEvidence> schemes;  // their cells are those of the map
  std::int64_t map_steps = 0;
  std::vector<std::int64_t> tuning_seeds;
  std::vector<PlayedRound> played = {};
  std::vector<LossTable> finals = {};   // by scheme, empty where it was in none
  std::vector<LossTable> right = {};    // likewise of classifiers: shares of right answers by seed and record
  double tokens_per_step = 1;           // of one run
  std::string counted = "tokens";       // what these are
  std::optional<double> guessing = {};  // the loss of guessing by frequency
  bool beyond_grid = true;              // rates below those of the map may be tried
};

struct PlannerRules {
  int first_settings = 4, later_settings = 2;  // of each scheme in a race
  int unclear_settings = 2;                    // of one at guessing level
  int edge_rounds = 3;                         // at one length, for bests at the smallest rate
  int least_final_seeds = 2, most_first_seeds = 16, most_final_seeds = 40;
  double flat = 0.02;  // nats: a curve that fell less since the round before has flattened
  double tied = 0.02;  // nats between settings that are as good as each other
  double same = 0.01;  // nats: schemes whose difference is surely smaller need no more seeds
  double least_growth = 1.25;
  std::int64_t long_steps = 3000;  // of long runs at least
  int long_rates = 2;              // that must end at guessing level before a scheme is said not to train
  int most_long_rates = 4;         // tried for that, as some end above guessing level or diverge
  double long_share = 0.25;        // of the budget after the map: schemes whose shortest long runs take more wait
  double warmup_share = 0.1;       // of a longer run, where the map has warmup
  double more_training = 10;       // times: what a claim must outlast, of an order or that a scheme does not train
  double least_closing = 0.5;      // of the pace of the one behind: how fast a lead may shrink though it never did
  double least_doublings = 0.75;   // of the length of runs, before their paces say anything
  double alpha = 0.05;
};

inline constexpr double kNoLoss = std::numeric_limits<double>::infinity();

std::vector<double> ladder_of(const SchemeEvidence& evidence);  // the rates of its map, ascending
std::int64_t largest_warmup(const SchemeEvidence& evidence);    // of its map
// The warmup of the map that a run of so many steps with this one stands for.
std::int64_t map_warmup_of(const StudyState& state, std::size_t scheme, std::int64_t warmup, std::int64_t steps,
                           const PlannerRules& rules);

// By steps, ascending: the map, then the races.
std::vector<std::int64_t> raced_lengths(const StudyState& state);
std::int64_t raced_steps(const StudyState& state);  // the last of them

// Of the map or of all races of that length; none where it was in none.
std::vector<RacedSetting> settings_at(const StudyState& state, std::size_t scheme, std::int64_t steps);
// Those that train before those that do not, then by loss; what diverged is out.
std::vector<RacedSetting> best_first(std::vector<RacedSetting> all);
// Infinite where none trains.
double best_loss_at(const StudyState& state, std::size_t scheme, std::int64_t steps);
bool trains_anywhere(const StudyState& state, std::size_t scheme);

// The setting that the final takes: at the last length, within `tied` of the best the one with margin. Nothing where
// none trains there.
std::optional<RacedSetting> chosen_setting(const StudyState& state, std::size_t scheme, const PlannerRules& rules = {});
// The next larger rate trains too, with the same warmup: at the last length where it was tried there, else in the map.
bool has_margin(const StudyState& state, std::size_t scheme, const RacedSetting& setting,
                const PlannerRules& rules = {});

// The next smaller rate of a scheme's map, or of the grid that continues it downwards.
std::optional<double> rate_below(const StudyState& state, std::size_t scheme, double lr);
// What a warmup of the map is in longer runs: the largest a tenth of them, the others in proportion.
std::int64_t warmup_for(const StudyState& state, std::size_t scheme, std::int64_t map_warmup, std::int64_t steps,
                        const PlannerRules& rules = {});

// The settings of each scheme that run on with so many steps; the schemes that have none are not in it.
std::vector<RoundEntry> racing_entries(const StudyState& state, std::int64_t steps, const PlannerRules& rules = {});
// One smaller rate for every scheme whose best at the last length is the smallest tried there, or which trained before
// and does not there.
std::vector<RoundEntry> edge_entries(const StudyState& state);
// For a scheme at guessing level, where losses say nothing about rates: small ones with warmup, the most promising
// first, then larger ones; last those that cannot reach guessing level in so many steps.
std::vector<RoundEntry> long_entries(const StudyState& state, std::size_t scheme, std::int64_t steps,
                                     const PlannerRules& rules = {});

// Whether the best loss of a scheme fell by more than `flat` from the length before the last race to it.
bool still_falls(const StudyState& state, std::size_t scheme, const PlannerRules& rules = {});
// By how much the tuned loss of the one behind comes nearer to that of the one ahead when runs get twice as long: the
// more of the last two times, and at least `least_closing` of what its own falls by. Nothing where runs were hardly
// made longer, infinite where the one behind had not begun before.
std::optional<double> closing_per_doubling(const StudyState& state, std::size_t behind, std::size_t ahead,
                                           const PlannerRules& rules = {});
// A difference that is told apart at this length, and that `more_training` would not make up for, closing in as fast.
bool is_lasting(const StudyState& state, const PairedDifference& pair, const PlannerRules& rules = {});

}  // namespace norma
