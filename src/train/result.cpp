// What a run comes to: the outcome of every member in words and numbers.
#include "norma/train/result.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "norma/train/causality.h"
#include "norma/train/cohort.h"
#include "norma/version.h"

namespace norma {
namespace {

constexpr std::uint64_t kBatchesCounted = 64;

struct Frequencies {
  std::map<std::int32_t, double> counts = {};
  double total = 0;
};

// Of targets in the first batches; nothing where they are no tokens.
std::optional<Frequencies> count_targets(const Source& source, std::uint64_t seed) {
  Frequencies found;
  Batch batch;
  for (std::uint64_t index = 0; index < kBatchesCounted; ++index) {
    source.fill(index, seed, batch);
    if (!batch.has("targets")) return std::nullopt;
    for (const std::int32_t id : batch.ids("targets")) {
      if (id == kIgnored) continue;
      ++found.counts[id];
      ++found.total;
    }
  }
  return found;
}

// Mean and mean square of the numbers that are asked for, in the first batches; nothing where none are.
struct AskedNumbers {
  double mean = 0, square = 0;
};
std::optional<AskedNumbers> asked_numbers(const Source& source, std::uint64_t seed) {
  AskedNumbers found;
  double count = 0;
  Batch batch;
  for (std::uint64_t index = 0; index < kBatchesCounted; ++index) {
    source.fill(index, seed, batch);
    if (!batch.has("answer")) return std::nullopt;
    for (const float x : batch.numbers("answer")) {
      found.mean += x;
      found.square += static_cast<double>(x) * x;
      ++count;
    }
  }
  return AskedNumbers{found.mean / count, found.square / count};
}

double entropy_of(const Frequencies& frequencies) {
  double entropy = 0;
  for (const auto& [id, count] : frequencies.counts)
    entropy -= count / frequencies.total * std::log(count / frequencies.total);
  return entropy;
}

MemberResult result_of_member(const Cohort& cohort, int member, const Source& source, bool leaks) {
  const MemberState& state = cohort.member(member);
  const TrainConfig& settings = cohort.settings()[static_cast<std::size_t>(member)];
  const auto seed = static_cast<std::uint64_t>(settings.data_seed);
  const double unigram = state.evaluation_loss ? guessing_level(source, seed) : unigram_entropy(source, seed);
  MemberResult result{.member = member,
                      .seed = settings.seed,
                      .lr = settings.lr,
                      .warmup = settings.schedule.warmup,
                      .final_loss = state.loss,
                      .best_loss = state.best_evaluation_loss.value_or(state.best_loss),
                      .evaluation_loss = state.evaluation_loss,
                      .best_evaluation_loss = state.best_evaluation_loss,
                      .evaluation_records = state.evaluation_records,
                      .unigram_entropy = std::isfinite(unigram) ? std::optional(unigram) : std::nullopt,
                      .outcome = outcome_of(state, unigram, source.optimum()),
                      .spikes = state.spikes,
                      .recovery_actions = state.actions,
                      .skipped_steps = state.skipped_steps};
  if (state.diverged) result.facts = {state.diverged_at_step, state.diverged_because};
  result.facts.first_bad_wire = state.first_bad_wire;
  if (leaks && !state.diverged) result.outcome = Outcome::leaks;
  return result;
}

}  // namespace

std::string loss_unit(const ModelConfig& config) {
  // Asked of a configuration whose sizes the data have yet to tell, so of its inputs: who is asked for no classes is
  // asked for numbers.
  const std::vector<InputSpec> inputs = config.family->inputs(config);
  return std::ranges::find(inputs, InputSpec::Content::targets, &InputSpec::content) == inputs.end()
             ? "mean squared error"
             : "";
}

std::string counted_unit(const ModelConfig& config) {
  std::string word = "sample";
  for (const InputSpec& input : config.family->inputs(config)) {
    if (input.name == "tokens" || input.name == "source") word = "token";
    if (input.name == "edges") word = "node";
  }
  return word;
}

double unigram_entropy(const Source& source, std::uint64_t seed) {
  if (const std::optional<AskedNumbers> asked = asked_numbers(source, seed))
    return asked->square - asked->mean * asked->mean;
  const std::optional<Frequencies> found = count_targets(source, seed);
  return found ? entropy_of(*found) : std::numeric_limits<double>::infinity();
}

std::vector<double> guessing_losses(const Source& source, std::uint64_t seed, std::int64_t batches) {
  std::vector<double> losses;
  if (const std::optional<AskedNumbers> asked = asked_numbers(source, seed)) {
    Batch batch;
    for (std::int64_t index = 0; index < batches; ++index) {
      source.fill_evaluation(index, batch);
      double sum = 0;
      for (const float x : batch.numbers("answer")) sum += (x - asked->mean) * (x - asked->mean);
      losses.push_back(sum / static_cast<double>(batch.numbers("answer").size()));
    }
    return losses;
  }
  const std::optional<Frequencies> found = count_targets(source, seed);
  if (!found) return losses;
  const double all = found->total + static_cast<double>(found->counts.size()) + 1;  // one more of each, one of the rest
  Batch batch;
  for (std::int64_t index = 0; index < batches; ++index) {
    source.fill_evaluation(index, batch);
    double sum = 0, counted = 0;
    for (const std::int32_t id : batch.ids("targets")) {
      if (id == kIgnored) continue;
      const auto known = found->counts.find(id);
      sum -= std::log((known == found->counts.end() ? 1 : known->second + 1) / all);
      ++counted;
    }
    if (counted > 0) losses.push_back(sum / counted);
  }
  // Frequencies that were counted on few tokens guess worse than true ones; the level is the entropy, as everywhere.
  double mean = 0;
  for (const double loss : losses) mean += loss / static_cast<double>(losses.size());
  const double excess = std::max(0.0, mean - entropy_of(*found));
  for (double& loss : losses) loss -= excess;
  return losses;
}

// Few held-out records are easier or harder to guess than all: a model that never moved would often pass for one that
// learns if it were compared with what guessing loses elsewhere.
double guessing_level(const Source& source, std::uint64_t seed) {
  const std::vector<double> losses = guessing_losses(source, seed, source.evaluation_batches());
  if (losses.empty()) return unigram_entropy(source, seed);
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

std::optional<double> most_frequent_share(const Source& source, std::uint64_t seed) {
  const std::optional<Frequencies> found = count_targets(source, seed);
  if (!found || found->counts.empty()) return std::nullopt;
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const std::int32_t answer = std::ranges::max_element(found->counts, fewer)->first;
  std::int64_t right = 0, asked = 0;
  Batch batch;
  for (std::int64_t index = 0; index < source.evaluation_batches(); ++index) {
    source.fill_evaluation(index, batch);
    const auto targets = batch.ids("targets");
    right += std::ranges::count(targets, answer);
    asked += std::ranges::count_if(targets, [](std::int32_t id) { return id != kIgnored; });
  }
  return asked > 0 ? std::optional(static_cast<double>(right) / static_cast<double>(asked)) : std::nullopt;
}

Outcome outcome_of(const MemberState& state, double unigram_entropy, std::optional<double> optimum) {
  if (state.diverged) return Outcome::diverged;
  const double loss = state.evaluation_loss.value_or(state.loss);
  // The optimum is a mean over all data, the loss one over some: lucky batches are no error.
  if (optimum && state.evaluation_margin && loss + *state.evaluation_margin < *optimum - kLearned)
    return Outcome::below_optimum;
  if (loss > unigram_entropy - kLearned) return Outcome::did_not_learn;
  return state.spikes > 0 ? Outcome::stable_after_spikes : Outcome::stable;
}

std::string verdict_of(Outcome outcome, const OutcomeFacts& facts) {
  const std::string_view name = name_of(outcome);
  switch (outcome) {
    case Outcome::diverged:
      return fmt::format("{} at step {}: {}", name, facts.diverged_at_step, facts.diverged_because);
    case Outcome::stopped: return fmt::format("{} at step {}", name, facts.stopped_at_step);
    default: return std::string(name);
  }
}

std::optional<Outcome> outcome_of_verdict(std::string_view verdict) {
  for (const auto& [word, outcome] : kOutcomeWords) {
    const bool with_step = outcome == Outcome::diverged || outcome == Outcome::stopped;
    if (with_step ? verdict.starts_with(word) : verdict == word) return outcome;
  }
  return std::nullopt;
}

RunResult describe_result(const Cohort& cohort, const Source& source, double seconds, std::int64_t steps_timed,
                          std::span<const Scores> scores) {
  RunResult result{.norma = NORMA_VERSION,
                   .scheme = cohort.config().model.scheme.asked(),
                   .task = source.describe(),
                   .steps = cohort.step(),
                   .parameters = cohort.parameters(),
                   .memory_bytes = cohort.memory_bytes(),
                   .optimum = source.optimum(),
                   .seconds = seconds};
  const RunConfig& config = cohort.config();
  const bool leaks = leak_of(config.model, static_cast<double>(config.train.steps)).has_value();
  const double per_step = steps_timed > 0 ? seconds / static_cast<double>(steps_timed) : 0;
  const double tokens = static_cast<double>(cohort.tokens_per_step());
  if (per_step > 0) {
    result.tokens_per_second = tokens * cohort.members() / per_step;
    result.gflops = cohort.flops_per_step() * cohort.members() / per_step * 1e-9;
  }
  for (int member = 0; member < cohort.members(); ++member) {
    MemberResult& one = result.members.emplace_back(result_of_member(cohort, member, source, leaks));
    if (per_step > 0) one.tokens_per_second = tokens / per_step;
    if (scores.empty()) continue;
    for (const Score& score : scores[static_cast<std::size_t>(member)]) one.scores[score.name] = score.value;
  }
  return result;
}

}  // namespace norma
