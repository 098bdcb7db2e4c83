// Conditions: what became of the run.
#include "norma/lab/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/diagnose/case.h"

namespace norma {
namespace {

constexpr double kLittle = 0.25;  // of what can be learned

// What the records say of a run that has not ended.
MemberResult result_so_far(const MemberHistory& member) {
  MemberResult result{.member = member.member, .seed = member.settings.seed, .lr = member.settings.lr};
  if (!member.steps.empty()) result.final_loss = member.steps.back().loss;
  if (!member.evaluations.loss.empty()) result.evaluation_loss = member.evaluations.loss.back();
  for (const RecordedEvent& event : member.events) {
    if (event.what != "diverged") continue;
    result.outcome = Outcome::diverged;
    result.facts = {.diverged_at_step = event.step, .diverged_because = event.why};
  }
  return result;
}

void complete_from_data(Case& one, const DiagnoseOptions& options) {
  const std::shared_ptr<const Source> source = open_again(one, options);
  if (source == nullptr) return;
  const auto seed = static_cast<std::uint64_t>(one.member.settings.data_seed);
  const double unigram = one.result.evaluation_loss ? guessing_level(*source, seed) : unigram_entropy(*source, seed);
  if (!std::isfinite(unigram)) return;
  one.result.unigram_entropy = unigram;
  if (one.result.outcome == Outcome::stable && one.loss() > unigram - kLearned)
    one.result.outcome = Outcome::did_not_learn;
}

std::string against_guessing(const Case& one) {
  std::string words = fmt::format("{} loss {:.3f}", one.result.evaluation_loss ? "held-out" : "training", one.loss());
  if (one.result.unigram_entropy) words += fmt::format(", {} {:.3f}", one.guessing(), *one.result.unigram_entropy);
  if (one.run.result && one.run.result->optimum)
    words += fmt::format(", best possible {:.3f}", *one.run.result->optimum);
  return words;
}

// The share of what can be learned beyond frequencies that was; NaN where nobody knows how much that is.
double learned_share(const Case& one) {
  if (!one.result.unigram_entropy || !one.run.result || !one.run.result->optimum) return kNaN;
  const double most = *one.result.unigram_entropy - *one.run.result->optimum;
  return most > kLearned ? (*one.result.unigram_entropy - one.loss()) / most : kNaN;
}

// Learned, but a sign that is never harmless stands beside it.
bool is_impaired(Case& one) {
  const double share = learned_share(one);
  if (!(share < kLittle) && std::isfinite(share)) return false;
  const bool rate = one.signs.largest_update.value >= 3 * kHighUpdate && std::isfinite(share);
  const bool attention = one.signs.saturated_late >= 0.5 && one.signs.saturated_at_start >= 0.5;
  if (!rate && !attention) return false;
  one.found.condition = Condition::impaired;
  if (!(rate && rate_is_too_high(one))) attention_is_saturated(one, one.signs.saturated_late, "from the first step on");
  if (std::isfinite(share))
    add_evidence(one, fmt::format("it learned {:.0f} % of what can be learned beyond {}", 100 * share, one.beyond()),
                 share, 1, {share, one.signs.last_step, ""});
  return true;
}

void describe_healthy(Case& one) {
  const Signs& s = one.signs;
  if (s.bad_probe.there()) {
    one.found.condition = Condition::impaired;
    tensor_is_not_finite(one);
    return;
  }
  if (is_impaired(one)) return;
  one.found.condition = Condition::healthy;
  one.found.words = one.result.outcome == Outcome::stable_after_spikes
                        ? fmt::format("it learned, after {} spike{} that passed", one.result.spikes,
                                      one.result.spikes == 1 ? "" : "s")
                        : std::string("it learned, and nothing that was recorded looks wrong");
  if (s.falling && learned_share(one) < kLittle)
    one.found.words = "it was learning and nothing looks wrong, but it ended long before it had learned what it can";
  if (const double share = learned_share(one); std::isfinite(share))
    add_evidence(one, fmt::format("it learned {:.0f} % of what can be learned beyond {}", 100 * share, one.beyond()),
                 share, 1, {share, s.last_step, ""});
  if (s.falling && s.trend_is_known())
    add_evidence(one,
                 fmt::format("the training loss was still falling at the end, by {:.2g} in 100 steps: more steps would "
                             "lower it",
                             -100 * s.slope),
                 s.slope, 0, {s.last_loss, s.last_step, ""});
}

// Without a level of guessing, what the first weights lose stands for it.
bool has_not_fallen(const Case& one) {
  return !one.result.unigram_entropy && std::isfinite(one.signs.first_loss) &&
         !(one.signs.last_loss < 0.99 * one.signs.first_loss);
}

// Weights as they began have learned nothing, however the loss compares with guessing on a few held-out numbers.
bool has_not_moved(const Case& one) {
  constexpr double kNotMoved = 1e-3;
  return one.signs.largest_update.there() && one.signs.moved < kNotMoved;
}

void find_condition(Case& one, const DiagnoseOptions& options) {
  const bool learned = one.result.outcome == Outcome::stable || one.result.outcome == Outcome::stable_after_spikes;
  if (!learned && held_nothing(one, options)) return;
  switch (one.result.outcome) {
    case Outcome::diverged:
      one.found.condition = Condition::diverged;
      find_cause(one, options);
      return;
    case Outcome::did_not_learn:
      one.found.condition = Condition::did_not_learn;
      find_cause(one, options);
      return;
    case Outcome::stopped:
      one.found.condition = Condition::given_up;
      one.found.words = "the sweep gave it up: others of the same grid were ahead";
      return;
    default: break;
  }
  if (has_not_fallen(one) || has_not_moved(one)) {
    one.found.condition = Condition::did_not_learn;
    return find_cause(one, options);
  }
  describe_healthy(one);
}

}  // namespace

Diagnosis diagnose(const RunHistory& run, const MemberHistory& member, const DiagnoseOptions& options) {
  Case one{.run = run,
           .member = member,
           .result = member.result ? *member.result : result_so_far(member),
           .signs = read_signs(run, member)};
  one.found.member = member.member;
  one.found.seed = member.settings.seed;
  if (member.steps.empty()) {
    one.found.condition = Condition::untold;
    one.found.words = "no step of it was recorded";
    return one.found;
  }
  if (!member.result) {
    one.found.notes.push_back(
        fmt::format("the run has not ended: step {} of {}", one.signs.last_step, member.settings.steps));
    complete_from_data(one, options);
  }
  find_condition(one, options);
  if (one.found.condition != Condition::diverged)
    one.found.evidence.insert(
        one.found.evidence.begin() + (one.found.evidence.empty() ? 0 : 1),
        {against_guessing(one), one.loss(), one.result.unigram_entropy.value_or(kNaN), one.signs.last_step, ""});
  if (is_failure(one.found.condition) || one.found.condition == Condition::undertrained ||
      one.found.condition == Condition::memorised || one.found.condition == Condition::nothing_to_learn)
    suggest(one);
  return one.found;
}

std::vector<Diagnosis> diagnose(const RunHistory& run, const DiagnoseOptions& options) {
  std::vector<Diagnosis> all;
  for (const MemberHistory& member : run.members) all.push_back(diagnose(run, member, options));
  return all;
}

}  // namespace norma
