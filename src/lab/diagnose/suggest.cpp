// What to try: changes of the configuration, each with the number it rests on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/diagnose/case.h"

namespace norma {
namespace {

// One significant digit, as people write rates: 1, 2, 3 or 5 times a power of ten, rounded down.
double round_rate(double rate) {
  if (!(rate > 0) || !std::isfinite(rate)) return 1e-3;
  const double power = std::pow(10, std::floor(std::log10(rate) + 1e-9));
  double best = power;
  for (const double digit : {2.0, 3.0, 5.0}) {
    if (digit * power <= rate * (1 + 1e-9)) best = digit * power;
  }
  return best;
}

std::string change_of(const char* key, double value) { return fmt::format("{}={:.6g}", key, value); }
std::string change_of(const char* key, std::int64_t value) { return fmt::format("{}={}", key, value); }

std::int64_t warmup_for(const Case& one) { return std::max<std::int64_t>(10, one.member.settings.steps / 10); }

// The rate at which the largest update would be the usual share of the weights.
double usual_rate(const Case& one) {
  const Signs& s = one.signs;
  const double lr = one.member.settings.lr;
  if (lr > 0 && s.largest_update.there() && s.largest_update.value > 0)
    return round_rate(lr * kUsualUpdate / s.largest_update.value);
  const double step = kUsualUpdate * s.weights_rms;  // of adaptive optimisers an update is about as large as the rate
  return round_rate(one.adaptive() ? step : step / s.first_gradient);
}

class Suggestions {
 public:
  explicit Suggestions(Case& one) : one_(one), because_(first_words(one)) {}

  void add(std::string words, std::vector<std::string> changes = {}, std::string because = "") {
    one_.found.suggestions.push_back(
        {std::move(words), std::move(changes), because.empty() ? because_ : std::move(because)});
  }

  void lower_rate(double rate) {
    add(fmt::format("lower the learning rate to {:.6g}", rate), {change_of("train.lr", rate)},
        update_words(rate / one_.member.settings.lr));
  }
  void raise_rate(double rate) {
    add(fmt::format("raise the learning rate to {:.6g}", rate), {change_of("train.lr", rate)},
        one_.member.settings.lr > 0 ? update_words(rate / one_.member.settings.lr) : "");
  }
  void warm_up(double rate) {
    const std::int64_t warmup = warmup_for(one_);
    add(fmt::format("warm up over {} steps, to a rate of {:.6g}", warmup, rate),
        {change_of("train.warmup", warmup), change_of("train.lr", rate)});
  }
  void change_scheme(const char* name, const char* title) {
    std::string because = because_;
    if (one_.amplification && one_.amplification->own > one_.amplification->pre && name == std::string_view("pre"))
      because += fmt::format("; amplification by theory is {:.3g}, that of Pre-LN {:.3g}", one_.amplification->own,
                             one_.amplification->pre);
    add(fmt::format("use {} instead of {}", title, one_.run.config.model.scheme.asked()),
        {fmt::format("model.scheme={}", name)}, because);
  }
  void clip() {
    if (one_.member.settings.clip > 0) return;
    add("clip gradients to norm 1", {"train.clip=1"},
        fmt::format("the gradient norm reached {:.3g} at step {}, and nothing clips it", one_.signs.gradient_most.value,
                    one_.signs.gradient_most.step));
  }

 private:
  static std::string first_words(const Case& one) {
    return one.found.evidence.empty() ? one.found.words : one.found.evidence.front().words;
  }
  std::string update_words(double factor) const {
    const SignReading& update = one_.signs.largest_update;
    if (!update.there()) return "";
    return fmt::format(
        "the largest update, of {} at step {}, would have {:.2g} times the rms of the weights instead of "
        "{:.2g}",
        update.site, update.step, update.value * factor, update.value);
  }

  Case& one_;
  std::string because_;
};

void suggest_scheme(const Case& one, Suggestions& to) {
  const std::string& scheme = one.run.config.model.scheme.asked();
  if (scheme != "pre") to.change_scheme("pre", "Pre-LN");
  if (scheme != "deepnorm") to.change_scheme("deepnorm", "DeepNorm");
}

void suggest_longer(const Case& one, Suggestions& to) {
  const std::int64_t steps = 4 * one.member.settings.steps;
  to.add(fmt::format("train for {} steps", steps), {change_of("train.steps", steps)});
  if (one.signs.largest_update.there() && one.signs.largest_update.value < kUsualUpdate / 2)
    to.raise_rate(std::min(usual_rate(one), round_rate(3 * one.member.settings.lr)));
}

void suggest_for_attention(const Case& one, Suggestions& to) {
  if (one.run.config.model.qk_norm.empty()) to.add("put a norm on queries and keys", {"model.qk_norm=rmsnorm"});
  const bool from_start = one.signs.saturated_at_start >= 0.5;
  if (!from_start) to.lower_rate(round_rate(one.member.settings.lr / 10));
  // Logits also grow where the residual path is at fault: only a trial tells.
  if (one.run.config.model.scheme.asked() != "pre") to.change_scheme("pre", "Pre-LN");
}

}  // namespace

void suggest(Case& one) {
  Suggestions to(one);
  const double lr = one.member.settings.lr;
  switch (one.found.cause) {
    case Cause::rate_too_high:
      to.lower_rate(usual_rate(one));
      to.warm_up(round_rate(3 * usual_rate(one)));
      to.clip();
      break;
    case Cause::rate_too_small:
      to.raise_rate(usual_rate(one));
      to.raise_rate(round_rate(usual_rate(one) / 5));
      break;
    case Cause::too_few_steps: suggest_longer(one, to); break;
    case Cause::gradients_vanish:
      suggest_scheme(one, to);
      if (one.signs.layer_gradient_most.value > 0) to.warm_up(round_rate(lr / 3));
      break;
    case Cause::gradients_explode:
      to.clip();
      to.lower_rate(round_rate(lr / 10));
      suggest_scheme(one, to);
      break;
    case Cause::attention_saturates: suggest_for_attention(one, to); break;
    case Cause::not_finite:
      to.add("look where values of such a size come from: norma inspect --run shows every layer");
      if (one.run.config.model.dtype == DType::f32)
        to.add("compute in double precision, to see whether it is only a matter of range", {"model.dtype=f64"});
      break;
    case Cause::data_say_nothing:
      to.add("look at the data: are labels and texts in the right order, and the columns the right ones?");
      break;
    case Cause::nothing_in_batches:
      to.add("look at the data: is there more than padding in the files, and are the columns the right ones?", {},
             one.found.words);
      break;
    case Cause::too_little_data:
      to.add("train on more data, or a smaller model");
      to.add("drop out a tenth of the activations", {"train.dropout=0.1"});
      to.add("let weights decay", {"train.weight_decay=0.1"});
      break;
    case Cause::unknown:
      if (one.signs.largest_update.there() || !one.signs.probed) {
        to.lower_rate(round_rate(lr / 10));
        to.warm_up(lr);
      }
      if (one.run.config.model.scheme.asked() != "pre") to.change_scheme("pre", "Pre-LN");
      break;
    case Cause::none: break;
  }
}

}  // namespace norma
