// What a run comes to, as values and as result.json of its directory (docs/runs.md).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/core/words.h"
#include "norma/train/judge.h"

namespace norma {

class Cohort;
struct MemberState;

// How a run ended.
enum class Outcome {
  stable,
  stable_after_spikes,
  did_not_learn,  // knows no more than how frequent each token is
  diverged,
  stopped,        // given up by successive halving
  leaks,          // sees what it is to predict (causality.h): its loss means nothing
  below_optimum,  // its loss is lower than any model's can be: an error of the setting
};

inline constexpr Word<Outcome> kOutcomeWords[] = {{"stable", Outcome::stable},
                                                  {"stable after spikes", Outcome::stable_after_spikes},
                                                  {"did not learn", Outcome::did_not_learn},
                                                  {"diverged", Outcome::diverged},
                                                  {"stopped early", Outcome::stopped},
                                                  {"leaks", Outcome::leaks},
                                                  {"below the optimum", Outcome::below_optimum}};
constexpr std::span<const Word<Outcome>> words_for(Outcome) { return kOutcomeWords; }
inline std::string_view name_of(Outcome outcome) { return word_for(words_for(outcome), outcome); }

// What a reader of results has about an outcome beside its name.
struct OutcomeFacts {
  std::int64_t diverged_at_step = 0;  // 0: did not
  std::string diverged_because = {}, first_bad_wire = {};
  std::int64_t stopped_at_step = 0;  // 0: was not
};

// "stable", "diverged at step 17: not finite", "stopped early at step 100".
std::string verdict_of(Outcome outcome, const OutcomeFacts& facts);
// The outcome that a verdict begins with; none for words of no outcome.
std::optional<Outcome> outcome_of_verdict(std::string_view verdict);

// nats below guessing level that count as having learned more than frequencies
inline constexpr double kLearned = 0.02;

struct MemberResult {
  int member = 0;
  std::int64_t seed = 0;
  double lr = 0;
  std::int64_t warmup = 0;
  // NaN: there is none.
  double final_loss = std::numeric_limits<double>::quiet_NaN();  // of the last training step
  double best_loss = std::numeric_limits<double>::quiet_NaN();   // held out, or of training where nothing is
  std::optional<double> evaluation_loss = {}, best_evaluation_loss = {};
  std::optional<double> evaluation_records = {};  // how many answers its accuracy is of
  std::map<std::string, double> scores = {};      // by name; NaN where one could not be had
  std::optional<double> unigram_entropy = {};     // what a model that knows only frequencies loses; none: no such thing
  Outcome outcome = Outcome::stable;
  OutcomeFacts facts = {};
  std::int64_t spikes = 0, recovery_actions = 0, skipped_steps = 0;
  std::optional<double> tokens_per_second = {};  // none: no step was taken in this process
};

struct RunResult {
  std::string norma, scheme, task;  // task: described
  std::int64_t steps = 0;
  std::int64_t parameters = 0;    // of one member
  std::int64_t memory_bytes = 0;  // of all
  std::optional<double> optimum = {};
  double seconds = 0;
  std::optional<double> tokens_per_second = {}, gflops = {};  // of all
  int cohort_members = 0;  // of a run of a sweep: how many were trained together; 0: it ran by itself
  std::vector<MemberResult> members = {};
};

RunResult describe_result(const Cohort& cohort, const Source& source, double seconds, std::int64_t steps_timed,
                          std::span<const Scores> scores = {});
// Of a member of a model that does not leak. Without an optimum none is known.
Outcome outcome_of(const MemberState& state, double unigram_entropy, std::optional<double> optimum = {});

// What losses of such a model are measured in, for tables and figures; empty: nats.
std::string loss_unit(const ModelConfig& config);

// What `tokens_per_step` counts: "token", of graphs "node", of others "sample".
std::string counted_unit(const ModelConfig& config);

// Entropy of single targets in the first batches, in nats: what a model that has learned only frequencies loses.
// Of numbers their variance, the squared error of their mean. Infinite where nothing is asked for.
double unigram_entropy(const Source& source, std::uint64_t seed);

// What a model that has learned the frequencies of the first batches, and nothing else, loses on the first held-out
// ones; in the mean no more than unigram_entropy. Of numbers, what their mean loses. Empty where nothing is asked for.
std::vector<double> guessing_losses(const Source& source, std::uint64_t seed, std::int64_t batches);

// Their mean over all batches that a held-out loss is taken of: what such a loss must be below. unigram_entropy where
// nothing is held out.
double guessing_level(const Source& source, std::uint64_t seed);

// Share of the held-out answers that whoever always gives the most frequent one of the first batches has right. Nothing
// where numbers are asked for, or nothing is held out.
std::optional<double> most_frequent_share(const Source& source, std::uint64_t seed);

std::string write_result(const RunResult& result);
// Throws Error that begins with `file` and names the field that is not as it should be.
RunResult read_result(std::string_view json, std::string_view file);

}  // namespace norma
