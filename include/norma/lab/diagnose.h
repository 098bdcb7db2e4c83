// Why a run did not learn, or diverged, and what to try: a reading of what it recorded. docs/diagnose.md has the rules
// and their limits.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "norma/core/words.h"
#include "norma/lab/run_history.h"

namespace norma {

enum class Condition {
  healthy,
  undertrained,      // stopped while it was still learning
  nothing_to_learn,  // as good as the data allow, which is guessing by frequency
  memorised,         // better on its training data than on any other
  impaired,          // learned, but far less than it could have
  did_not_learn,
  diverged,
  given_up,  // by the sweep that it belongs to
  untold,    // nothing was recorded
};

inline constexpr Word<Condition> kConditionWords[] = {{"healthy", Condition::healthy},
                                                      {"not enough training", Condition::undertrained},
                                                      {"nothing to learn", Condition::nothing_to_learn},
                                                      {"learned by heart", Condition::memorised},
                                                      {"learned little", Condition::impaired},
                                                      {"did not learn", Condition::did_not_learn},
                                                      {"diverged", Condition::diverged},
                                                      {"stopped early", Condition::given_up},
                                                      {"nothing recorded", Condition::untold}};
constexpr std::span<const Word<Condition>> words_for(Condition) { return kConditionWords; }
inline std::string_view name_of(Condition condition) { return word_for(words_for(condition), condition); }

enum class Cause {
  none,
  rate_too_high,
  rate_too_small,
  too_few_steps,
  gradients_vanish,
  gradients_explode,
  attention_saturates,
  not_finite,  // with updates that are not to blame
  data_say_nothing,
  nothing_in_batches,  // padding alone: one answer, or one question
  too_little_data,
  unknown,
};

inline constexpr Word<Cause> kCauseWords[] = {{"none", Cause::none},
                                              {"learning rate too high", Cause::rate_too_high},
                                              {"learning rate too small", Cause::rate_too_small},
                                              {"too few steps", Cause::too_few_steps},
                                              {"gradients vanish", Cause::gradients_vanish},
                                              {"gradients explode", Cause::gradients_explode},
                                              {"attention saturates", Cause::attention_saturates},
                                              {"a tensor is not finite", Cause::not_finite},
                                              {"the data say nothing", Cause::data_say_nothing},
                                              {"nothing in the batches", Cause::nothing_in_batches},
                                              {"too little data", Cause::too_little_data},
                                              {"unknown", Cause::unknown}};
constexpr std::span<const Word<Cause>> words_for(Cause) { return kCauseWords; }
inline std::string_view name_of(Cause cause) { return word_for(words_for(cause), cause); }

// A number that a conclusion rests on.
struct DiagnosisEvidence {
  std::string words;
  double value = 0;
  double against = std::numeric_limits<double>::quiet_NaN();  // what it is compared with; NaN: nothing
  std::int64_t step = 0;                                      // 0: of no step
  std::string site = {};                                      // of no place in the model when empty
};

struct Suggestion {
  std::string words;
  std::vector<std::string> changes = {};  // "train.lr=0.003"; empty: nothing that a configuration could say
  std::string because = {};
};

struct Diagnosis {
  int member = 0;
  std::int64_t seed = 0;
  Condition condition = Condition::healthy;
  Cause cause = Cause::none;
  std::string words = {};
  std::vector<DiagnosisEvidence> evidence = {};  // the weightiest first
  std::vector<Suggestion> suggestions = {};      // the most promising first
  std::vector<std::string> notes = {};           // what could not be looked at
};

struct DiagnoseOptions {
  // Of files of data that are read again, where the question is whether they say anything; larger ones are left alone.
  std::int64_t most_data_bytes = std::numeric_limits<std::int64_t>::max();
};

Diagnosis diagnose(const RunHistory& run, const MemberHistory& member, const DiagnoseOptions& options = {});
std::vector<Diagnosis> diagnose(const RunHistory& run, const DiagnoseOptions& options = {});  // one for each member

constexpr bool is_failure(Condition condition) {
  return condition == Condition::diverged || condition == Condition::did_not_learn || condition == Condition::impaired;
}

// A shorter copy of a run with a suggestion's changes, or with none to compare with.
struct Trial {
  std::string name;   // of its directory
  std::string words;  // what is changed
  RunConfig config = {};
  double seconds = 0;  // that it will take, by the speed of the run; 0: not known
};

// The two or three cheapest experiments for a member, and the run as it was at the same length, which comes first where
// there is one. `steps` of each, 0: as few as may tell. Empty where no suggestion can be tried.
std::vector<Trial> plan_trials(const RunHistory& run, const MemberHistory& member, const Diagnosis& diagnosis,
                               std::int64_t steps, const SchemeLibrary& schemes);

struct TrialResult {
  std::string name, words;
  std::int64_t steps = 0;
  Outcome outcome = Outcome::stable;
  double loss = 0;  // held out, or of training where nothing is; NaN when it diverged
  std::string verdict;
};
TrialResult read_trial(const Trial& trial, const std::filesystem::path& directory);

// One sentence: which change made the run learn, or that none did.
std::string conclude_trials(const std::vector<TrialResult>& results, const Diagnosis& diagnosis);

struct DiagnosisReport {
  std::string run;
  std::string scheme;
  std::vector<Diagnosis> members = {};
  std::vector<TrialResult> trials = {};
  std::string conclusion = {};  // of the trials
};
std::string write_diagnosis(const DiagnosisReport& report);  // as JSON

}  // namespace norma
