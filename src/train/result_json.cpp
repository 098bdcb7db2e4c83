// result.json: the fields of a run's result, for writing and reading. Keys stand in the order of the alphabet; a number
// that is not finite is null.
#include "core/json_read.h"
#include "core/json_write.h"
#include "norma/train/result.h"

namespace norma {

template <typename Io>
void fields(Io& io, In<Io, MemberResult>& member) {
  io.field("member", member.member);
  io.field("seed", member.seed);
  io.field("lr", member.lr);
  io.field("warmup", member.warmup);
  io.field("final_loss", member.final_loss);
  io.field("best_loss", member.best_loss);
  io.field("evaluation_loss", member.evaluation_loss);
  io.field("best_evaluation_loss", member.best_evaluation_loss);
  io.sparse("evaluation_records", member.evaluation_records);
  io.later("scores", member.scores);
  io.field("unigram_entropy", member.unigram_entropy);
  io.or_null("diverged_at_step", member.facts.diverged_at_step);
  io.or_null("diverged_because", member.facts.diverged_because);
  io.or_null("first_bad_wire", member.facts.first_bad_wire);
  io.sparse("stopped_at_step", member.facts.stopped_at_step);
  io.field("spikes", member.spikes);
  io.field("recovery_actions", member.recovery_actions);
  io.field("skipped_steps", member.skipped_steps);
  io.field("tokens_per_second", member.tokens_per_second);
  bool diverged = member.outcome == Outcome::diverged;
  std::string verdict = verdict_of(member.outcome, member.facts);
  io.field("diverged", diverged);
  io.field("verdict", verdict);
  if constexpr (Io::kReads) {
    const std::optional<Outcome> outcome = outcome_of_verdict(verdict);
    io.expect(outcome.has_value(), "verdict", "an outcome such as \"stable\" or \"diverged at step 17: not finite\"");
    member.outcome = *outcome;
    io.expect(diverged == (member.outcome == Outcome::diverged), "diverged", "what the verdict says");
  }
}

template <typename Io>
void fields(Io& io, In<Io, RunResult>& result) {
  io.field("norma", result.norma);
  io.field("scheme", result.scheme);
  io.field("task", result.task);
  io.field("steps", result.steps);
  io.field("parameters", result.parameters);
  io.field("memory_bytes", result.memory_bytes);
  io.field("optimum", result.optimum);
  io.field("seconds", result.seconds);
  io.field("tokens_per_second", result.tokens_per_second);
  io.field("gflops", result.gflops);
  io.sparse("cohort_members", result.cohort_members);
  io.field("members", result.members);
  io.expect(!result.members.empty(), "members", "one for each model that was trained");
}

std::string write_result(const RunResult& result) {
  return write_json_text<nlohmann::json, NonFiniteAs::null>(result, 2);
}

RunResult read_result(std::string_view json, std::string_view file) {
  return read_json_text<RunResult>(json, file, NonFiniteAs::null);
}

}  // namespace norma
