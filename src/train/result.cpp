// What a run comes to: the outcome of every member in words and numbers.
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "norma/train/trainer.h"
#include "norma/version.h"

namespace norma {
namespace {

using json = nlohmann::json;

constexpr std::uint64_t kBatchesCounted = 64;
constexpr double kLearned = 0.02;  // nats below the unigram entropy that count as having learned more than frequencies

json finite(double value) { return std::isfinite(value) ? json(value) : json(); }
json finite(const std::optional<double>& value) { return value ? finite(*value) : json(); }

}  // namespace

double unigram_entropy(const Source& source, std::uint64_t seed) {
  std::map<std::int32_t, double> counts;
  double total = 0;
  Batch batch;
  for (std::uint64_t index = 0; index < kBatchesCounted; ++index) {
    source.fill(index, seed, batch);
    if (!batch.has("targets")) return std::numeric_limits<double>::infinity();
    for (const std::int32_t id : batch.ids("targets")) {
      if (id == kIgnored) continue;
      ++counts[id];
      ++total;
    }
  }
  double entropy = 0;
  for (const auto& [id, count] : counts) entropy -= count / total * std::log(count / total);
  return entropy;
}

std::string describe_outcome(const MemberState& state, double unigram_entropy) {
  if (state.diverged) return fmt::format("diverged at step {}: {}", state.diverged_at_step, state.diverged_because);
  const double loss = state.evaluation_loss.value_or(state.loss);
  if (loss > unigram_entropy - kLearned) return "did not learn";
  return state.spikes > 0 ? "stable after spikes" : "stable";
}

std::string describe_result(const Cohort& cohort, const Source& source, double seconds, std::int64_t steps_timed,
                            std::span<const Scores> scores) {
  const double per_step = steps_timed > 0 ? seconds / static_cast<double>(steps_timed) : 0;
  const double tokens = static_cast<double>(cohort.tokens_per_step());
  json result = {{"norma", NORMA_VERSION},
                 {"scheme", cohort.config().model.scheme.asked()},
                 {"task", source.describe()},
                 {"steps", cohort.step()},
                 {"parameters", cohort.parameters()},
                 {"memory_bytes", cohort.memory_bytes()},
                 {"optimum", finite(source.optimum())},
                 {"seconds", seconds},
                 {"tokens_per_second", per_step > 0 ? json(tokens * cohort.members() / per_step) : json()},
                 {"gflops", per_step > 0 ? json(cohort.flops_per_step() * cohort.members() / per_step * 1e-9) : json()},
                 {"members", json::array()}};
  for (int member = 0; member < cohort.members(); ++member) {
    const MemberState& state = cohort.member(member);
    const TrainConfig& settings = cohort.settings()[static_cast<std::size_t>(member)];
    const double unigram = unigram_entropy(source, static_cast<std::uint64_t>(settings.data_seed));
    json named = json::object();
    if (!scores.empty()) {
      for (const Score& score : scores[static_cast<std::size_t>(member)]) named[score.name] = finite(score.value);
    }
    result["members"].push_back({{"member", member},
                                 {"seed", settings.seed},
                                 {"lr", settings.lr},
                                 {"warmup", settings.schedule.warmup},
                                 {"final_loss", finite(state.loss)},
                                 {"best_loss", finite(state.best_evaluation_loss.value_or(state.best_loss))},
                                 {"evaluation_loss", finite(state.evaluation_loss)},
                                 {"best_evaluation_loss", finite(state.best_evaluation_loss)},
                                 {"scores", named},
                                 {"unigram_entropy", unigram},
                                 {"diverged", state.diverged},
                                 {"diverged_at_step", state.diverged ? json(state.diverged_at_step) : json()},
                                 {"diverged_because", state.diverged ? json(state.diverged_because) : json()},
                                 {"first_bad_wire", state.first_bad_wire.empty() ? json() : json(state.first_bad_wire)},
                                 {"spikes", state.spikes},
                                 {"recovery_actions", state.actions},
                                 {"skipped_steps", state.skipped_steps},
                                 {"tokens_per_second", per_step > 0 ? json(tokens / per_step) : json()},
                                 {"verdict", describe_outcome(state, unigram)}});
  }
  return result.dump(2) + "\n";
}

}  // namespace norma
