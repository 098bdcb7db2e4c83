// Causes: each function says whether its cause holds, and with which numbers. The most certain sign is asked first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/diagnose/case.h"
#include "norma/theory/predict.h"
#include "norma/train/data.h"
#include "norma/train/judge.h"
#include "norma/train/trained_run.h"

namespace norma {
namespace {

constexpr double kAtGuessing = 0.05;    // nats
constexpr double kBarelyTrained = 0.3;  // times the weights, that all updates together come to

// The files of the data, all together.
std::int64_t data_bytes(const DataConfig& data) {
  std::int64_t bytes = 0;
  for (const std::string& path : {data.path, data.target_path}) {
    std::error_code ignored;
    if (path.empty()) continue;
    const auto size = std::filesystem::file_size(path, ignored);
    if (!ignored) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

std::optional<AmplificationPair> amplification_by_theory(const ModelConfig& model) {
  try {
    ModelConfig pre = model;
    pre.scheme = SchemeChoice("pre");
    const AmplificationPair pair{predict(model).amplification, predict(pre).amplification};
    if (!(pair.own > 0) || !(pair.pre > 0) || !std::isfinite(pair.own)) return std::nullopt;
    return pair;
  } catch (const Error&) {  // no rule covers it
    return std::nullopt;
  }
}

bool attention_has_grown(Case& one) {
  const Signs& s = one.signs;
  if (!s.logit_most.there() || !s.logit_at_start.there()) return false;
  const double start = std::max(5.0, std::abs(s.logit_at_start.value));
  if (s.logit_most.value < kSaturatedLogit || s.logit_most.value < 20 * start) return false;
  one.found.cause = Cause::attention_saturates;
  one.found.words = "attention logits have grown out of bounds";
  add_evidence(one,
               fmt::format("the largest attention logit grew from {:.2g} at step 1 to {:.3g} {}",
                           s.logit_at_start.value, s.logit_most.value, where_of(s.logit_most)),
               s.logit_most.value, s.logit_at_start.value, s.logit_most);
  return true;
}

bool rate_is_too_small(Case& one) {
  const Signs& s = one.signs;
  if (!s.largest_update.there() || s.largest_update.value >= kSmallUpdate || !(s.moved < kHardlyMoved)) return false;
  one.found.cause = Cause::rate_too_small;
  one.found.words =
      one.member.settings.lr == 0
          ? std::string("the learning rate is 0: the weights are those of the start")
          : fmt::format(
                "the learning rate is too small: all {} steps together moved the weights by at most {:.2g} % of "
                "their size",
                s.last_step, 100 * s.moved);
  add_evidence(
      one,
      fmt::format("the largest update, {}, has {:.2g} times the rms of the weights; usual are {:.0e} to {:.0e}",
                  where_of(s.largest_update), s.largest_update.value, kUsualUpdate / 10, kUsualUpdate),
      s.largest_update.value, kUsualUpdate, s.largest_update);
  return true;
}

void add_bad_tensor(Case& one) {
  const OutcomeFacts& facts = one.result.facts;
  if (!facts.first_bad_wire.empty())
    add_evidence(one,
                 fmt::format("the first tensor that is not finite is '{}' at step {}", facts.first_bad_wire,
                             facts.diverged_at_step),
                 kNaN, kNaN, {kNaN, facts.diverged_at_step, facts.first_bad_wire});
  if (one.signs.bad_probe.there())
    add_evidence(one,
                 fmt::format("the first probe that is not finite is the {} at step {}", one.signs.bad_probe.site,
                             one.signs.bad_probe.step),
                 one.signs.bad_probe.value, kNaN, one.signs.bad_probe);
}

// Nothing beyond frequencies is in the data, as far as a model of counts can see.
bool data_say_nothing(Case& one, const DiagnoseOptions& options) {
  const double guess = *one.result.unigram_entropy;
  if (std::abs(one.signs.last_loss - guess) > kAtGuessing) return false;
  const auto& optimum = one.run.result ? one.run.result->optimum : std::nullopt;
  if (optimum && *optimum < guess - kLearned) return false;
  std::optional<DataTest> test;
  if (!optimum) {
    const std::shared_ptr<const Source> source = open_again(one, options);
    if (source != nullptr) test = test_data(*source, static_cast<std::uint64_t>(one.member.settings.data_seed));
    if (!test || !test->says_nothing()) return false;
  }
  one.found.condition = Condition::nothing_to_learn;
  one.found.cause = Cause::data_say_nothing;
  one.found.words = fmt::format("the loss is that of {}, {:.3f}, and the data give no sign that more can be known",
                                one.guessing(), guess);
  if (optimum)
    add_evidence(one, fmt::format("the best loss that any model can reach is {:.3f}", *optimum), *optimum, guess);
  if (test) add_evidence(one, fmt::format("over {} targets {}", test->targets, test->words), test->gain, 0);
  return true;
}

bool stopped_too_soon(Case& one) {
  const Signs& s = one.signs;
  const bool hardly_begun = s.moved < kBarelyTrained;
  if (!s.falling && !hardly_begun) return false;
  one.found.condition = Condition::undertrained;
  one.found.cause = Cause::too_few_steps;
  one.found.words =
      s.falling ? fmt::format("{} steps were too few to tell; it was still learning when it ended", s.last_step)
                : fmt::format("{} steps were too few to tell; the weights are almost those of the start", s.last_step);
  const std::string pace = s.trend_is_known() ? fmt::format(", at the end by {:.2g} in 100 steps", -100 * s.slope) : "";
  add_evidence(one,
               fmt::format("the training loss {} from {:.3f} at step 1 to {:.3f} at step {}{}",
                           s.last_loss < s.first_loss ? "fell" : "went", s.first_loss, s.last_loss, s.last_step, pace),
               s.slope, 0, {s.last_loss, s.last_step, ""});
  if (s.largest_update.there())
    add_evidence(one, fmt::format("all updates together moved the weights by at most {:.2g} times their size", s.moved),
                 s.moved, kNaN, {s.moved, s.last_step, ""});
  return true;
}

bool learned_by_heart(Case& one) {
  if (!one.result.evaluation_loss || !one.result.unigram_entropy) return false;
  const double guess = *one.result.unigram_entropy;
  if (!(one.signs.last_loss < guess - 5 * kLearned) || !(*one.result.evaluation_loss > one.signs.last_loss + 0.1))
    return false;
  one.found.condition = Condition::memorised;
  one.found.cause = Cause::too_little_data;
  one.found.words = fmt::format(
      "it learned its training data by heart: {:.3f} there, {:.3f} on held-out data, where {} loses "
      "{:.3f}",
      one.signs.last_loss, *one.result.evaluation_loss, one.guessing(), guess);
  add_evidence(one, fmt::format("training loss {:.3f} at step {}", one.signs.last_loss, one.signs.last_step),
               one.signs.last_loss, *one.result.evaluation_loss, {kNaN, one.signs.last_step, ""});
  return true;
}

}  // namespace

std::string where_of(const SignReading& reading) {
  if (reading.site.empty()) return fmt::format("at step {}", reading.step);
  return fmt::format("in {} at step {}", reading.site, reading.step);
}

void add_evidence(Case& one, std::string words, double value, double against, const SignReading& where) {
  one.found.evidence.push_back({std::move(words), value, against, where.step, where.site});
}

std::shared_ptr<const Source> source_of(Case& one, const DiagnoseOptions& options) {
  if (one.source) return *one.source;
  one.source = nullptr;
  RunConfig config = one.run.config;
  if (data_bytes(config.data) > options.most_data_bytes) {
    one.no_source = "the data were not read again: they are large";
    return nullptr;
  }
  try {
    config.data = stored_data(config.data, one.run.path);
    one.source = open_data(config);
  } catch (const Error& error) {
    one.no_source = fmt::format("the data could not be read again: {}", error.what());
  }
  return *one.source;
}

std::shared_ptr<const Source> open_again(Case& one, const DiagnoseOptions& options) {
  std::shared_ptr<const Source> source = source_of(one, options);
  const bool told = std::ranges::find(one.found.notes, one.no_source) != one.found.notes.end();
  if (source == nullptr && !told) one.found.notes.push_back(one.no_source);
  return source;
}

// The entropy of what was asked for is in the records; whether questions differ, only the data can say.
bool held_nothing(Case& one, const DiagnoseOptions& options) {
  constexpr double kNone = 1e-9;  // nats
  const bool one_answer = one.result.unigram_entropy && std::abs(*one.result.unigram_entropy) < kNone;
  if (!one_answer && !is_classifier(one.run.config.model)) return false;
  std::optional<std::string> why;
  if (const std::shared_ptr<const Source> source = source_of(one, options)) {
    why = nothing_to_learn(*source, one.run.config.model, static_cast<std::uint64_t>(one.member.settings.data_seed));
    if (!why) return false;
  } else if (one_answer) {
    why = "every target that was counted is the same, as far as it was recorded";
  }
  if (!why) return false;
  one.found.condition = Condition::nothing_to_learn;
  one.found.cause = Cause::nothing_in_batches;
  one.found.words = "in its batches " + *why;
  return true;
}

bool rate_is_too_high(Case& one) {
  const Signs& s = one.signs;
  if (!s.largest_update.there() || s.largest_update.value < kHighUpdate) return false;
  one.found.cause = Cause::rate_too_high;
  one.found.words = fmt::format("the learning rate is too high: one step changes {} by {:.2g} times its weights",
                                s.largest_update.site, s.largest_update.value);
  add_evidence(one,
               fmt::format("the update of {} at step {} has {:.2g} times the rms of its initial weights; usual are "
                           "{:.0e} to {:.0e}",
                           s.largest_update.site, s.largest_update.step, s.largest_update.value, kUsualUpdate / 10,
                           kUsualUpdate),
               s.largest_update.value, kUsualUpdate, s.largest_update);
  if (s.stream_most.there() && s.stream_at_start.there() && s.stream_most.value > 10 * s.stream_at_start.value)
    add_evidence(one,
                 fmt::format("the stream grew from rms {:.2g} at step 1 to {:.2g} {}", s.stream_at_start.value,
                             s.stream_most.value, where_of(s.stream_most)),
                 s.stream_most.value, s.stream_at_start.value, s.stream_most);
  return true;
}

bool attention_is_saturated(Case& one, double share, const char* when) {
  const Signs& s = one.signs;
  if (share < 0.5) return false;
  one.found.cause = Cause::attention_saturates;
  one.found.words = fmt::format("attention logits are so large {} that most layers look at a single token", when);
  add_evidence(one,
               fmt::format("the largest attention logit is {:.3g} {}; {:.0f} % of the attention layers have one above "
                           "{:.0f} and almost no entropy",
                           s.logit_most.value, where_of(s.logit_most), 100 * share, kSaturatedLogit),
               s.logit_most.value, kSaturatedLogit, s.logit_most);
  return true;
}

bool tensor_is_not_finite(Case& one) {
  const OutcomeFacts& facts = one.result.facts;
  const bool bad = !facts.first_bad_wire.empty() || one.signs.bad_probe.there();
  if (!bad) return false;
  const std::string where = !facts.first_bad_wire.empty() ? facts.first_bad_wire : one.signs.bad_probe.site;
  const std::int64_t step = !facts.first_bad_wire.empty() ? facts.diverged_at_step : one.signs.bad_probe.step;
  one.found.cause = Cause::not_finite;
  one.found.words = step <= 1 ? fmt::format("{} is not finite before any weight has changed", where)
                              : fmt::format("{} is not finite from step {} on, after ordinary updates", where, step);
  add_bad_tensor(one);
  return true;
}

void find_cause(Case& one, const DiagnoseOptions& options) {
  const bool failed_at_once = one.result.outcome == Outcome::diverged && one.result.facts.diverged_at_step <= 1;
  if (failed_at_once && tensor_is_not_finite(one)) return;
  if (rate_is_too_high(one)) {
    add_bad_tensor(one);
    return;
  }
  if (attention_is_saturated(one, one.signs.saturated_at_start, "from the first step on")) return;
  if (one.found.condition == Condition::did_not_learn && (no_gradient_at_all(one) || rate_is_too_small(one))) return;
  one.amplification = amplification_by_theory(one.run.config.model);
  if (one.found.condition == Condition::did_not_learn && gradients_vanish(one)) return;
  if (attention_has_grown(one) || attention_is_saturated(one, one.signs.saturated_late, "at the end")) {
    add_bad_tensor(one);
    return;
  }
  if (one.found.condition == Condition::diverged) {
    if (gradients_explode(one)) return add_bad_tensor(one);
    if (tensor_is_not_finite(one)) return;
  } else {
    if (learned_by_heart(one)) return;
    if (one.result.unigram_entropy && data_say_nothing(one, options)) return;
    if (tensor_is_not_finite(one) || stopped_too_soon(one)) return;
  }
  one.found.cause = Cause::unknown;
  one.found.words = !one.signs.probed ? "there are no probes that could say why; train.probes=true records them"
                    : one.signs.largest_update.there()
                        ? "the recorded probes do not say why: updates, gradients and attention are as usual"
                        : "no update of a layer was recorded: the layers have no weights, or none that the probes see";
  if (one.signs.largest_update.there())
    add_evidence(one,
                 fmt::format("the largest update, {}, has {:.2g} times the rms of the weights",
                             where_of(one.signs.largest_update), one.signs.largest_update.value),
                 one.signs.largest_update.value, kUsualUpdate, one.signs.largest_update);
  add_amplification(one);
}

}  // namespace norma
