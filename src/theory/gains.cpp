#include "theory/gains.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "norma/schemes/trace.h"

namespace norma {

// What init gains do to each kind of branch. What reads a memory has a law of its own, RoleGains::cross.
struct GainLaws {
  using Scale = BranchScale (RoleGains::*)(bool normed, const Variables& place) const;
  struct Row {
    const char* kind;
    Scale scale;
  };
  static constexpr Row kRows[] = {{"attention", &RoleGains::attention_scale},
                                  {"cross", nullptr},
                                  {"ffn", &RoleGains::ffn_scale},
                                  {"conv", &RoleGains::conv_scale},
                                  {"token", &RoleGains::token_scale}};

  static const Row* find(const BranchKind& kind) {
    const auto* found = std::ranges::find_if(kRows, [&](const Row& row) { return row.kind == kind.key; });
    return found == std::end(kRows) ? nullptr : found;
  }
};

bool has_gain_law(const BranchKind& kind) { return GainLaws::find(kind) != nullptr; }

void RoleGains::read() {
  for (const auto& [rule, entries] : s_.scheme.rules) {
    auto* target = rule == "init.gain" ? &gains_ : rule == "init.std" ? &deviations_ : nullptr;
    if (target == nullptr) continue;  // rules of the optimiser
    for (const NamedExpression& entry : entries) {
      if (!moves_branches(entry.name)) continue;
      target->emplace(entry.name, fold(*entry.value, s_, print_expression(*entry.value)));
    }
  }
  attention_values_normed_ = values_are_normed("attention");
  cross_values_normed_ = values_are_normed("cross");
  if (const auto found = s_.scheme.branch_options.find("conv"); found != s_.scheme.branch_options.end()) {
    const auto inner = found->second.find("inner");
    if (inner != found->second.end() && inner->second != "dyt") forgetful_ = &branch_kind("conv");
  }
  if (!constant()) return;
  attention_ = attention({});
  cross_ = cross_gains({});
}

bool RoleGains::constant() const {
  const auto fixed = [](const auto& entry) { return entry.second.expression == nullptr; };
  return std::all_of(gains_.begin(), gains_.end(), fixed) && std::all_of(deviations_.begin(), deviations_.end(), fixed);
}

BranchScale RoleGains::scale(const BranchKind& kind, bool normed, const Variables& place) const {
  return (this->*GainLaws::find(kind)->scale)(normed, place);
}

AttentionGains RoleGains::attention(const Variables& place) const {
  if (attention_) return *attention_;
  const double xavier = std::sqrt(1 / static_cast<double>(s_.config.width));
  return {gain("query", xavier, place), gain("key", xavier, place), gain("value", xavier, place),
          gain("out", xavier, place)};
}

AttentionGains RoleGains::cross_gains(const Variables& place) const {
  const double xavier = std::sqrt(1 / static_cast<double>(s_.config.width));
  return {gain("cross_query", xavier, place), gain("cross_key", xavier, place), gain("cross_value", xavier, place),
          gain("cross_out", xavier, place)};
}

CrossScale RoleGains::cross(bool normed, double variance, double memory_variance, const Variables& place) const {
  const auto [q, k, v, o] = cross_ ? *cross_ : cross_gains(place);
  const double ratio = variance > 0 ? std::sqrt(memory_variance / variance) : 1, value = v * v, out = o * o;
  const double sharpness = std::abs(q * k), memory = sharpness / ratio, scores = (1 / (q * q) + 1 / (k * k)) / 2;
  CrossScale scale{.query = {.input = sharpness * ratio}, .memory = memory};
  BranchScale& by = scale.query;
  if (normed) {
    by.weight = by.noise_last = 1 / out;
    by.noise_first = 1 / value;
    by.noise_scores = scores;
  } else if (cross_values_normed_) {
    by.output = out;
    by.noise_first = out / value;
    by.noise_scores = out * scores;
  } else {
    by.output = value * out / memory;
    by.weight = by.noise_last = value / memory;
    by.noise_first = out / memory;
    by.noise_scores = value * out / memory * scores;
  }
  return scale;
}

bool RoleGains::moves_branches(const std::string& role) {
  static const std::vector<std::string> roles = {"all",   "block", "weight", "query", "key",
                                                 "value", "out",   "ffn",    "conv",  "conv_out"};
  const std::string own = role.starts_with("cross_") ? role.substr(6) : role;
  return std::find(roles.begin(), roles.end(), own) != roles.end();
}

const Coefficient* RoleGains::rule(const Rules& rules, const char* role) {
  const std::string_view text = role;
  const std::string_view own = text.starts_with("cross_") ? text.substr(6) : text;
  for (const std::string_view name :
       {text, own, std::string_view("weight"), std::string_view("block"), std::string_view("all")}) {
    if (const auto found = rules.find(name); found != rules.end()) return &found->second;
  }
  return nullptr;
}

double RoleGains::gain(const char* role, double xavier, const Variables& place) const {
  const Coefficient *factor = rule(gains_, role), *deviation = rule(deviations_, role);
  const double given = deviation == nullptr ? 1 : value_of(*deviation, place) / xavier;
  return given * (factor == nullptr ? 1 : value_of(*factor, place));
}

BranchScale RoleGains::ffn_scale(bool normed, const Variables& place) const {
  const double d = static_cast<double>(s_.config.width);
  const double hidden = s_.config.hidden == 0 ? 4 * d : static_cast<double>(s_.config.hidden);
  const double xavier = std::sqrt(2 / (d + hidden));
  const double first = gain("ffn", xavier, place);
  const double last = gain(deviations_.contains("out") ? "out" : "ffn", xavier, place);
  const double in = first * first, out = last * last;
  if (normed) return {in, 1, 1 / out, 1 / out, 1 / in, 1};
  return {in, out, 1, 1, out / in, 1};
}

double RoleGains::factor(std::initializer_list<std::string_view> roles, const Variables& place) const {
  for (const std::string_view role : roles) {
    if (const auto found = gains_.find(role); found != gains_.end()) return value_of(found->second, place);
  }
  return 1;
}

// As a feed-forward branch, over the deviation of He et al.; a family that is given another one says so itself.
BranchScale RoleGains::conv_scale(bool normed, const Variables& place) const {
  const double first = factor({"conv", "ffn", "weight", "block", "all"}, place);
  const double last = factor({"conv_out", "conv", "ffn", "weight", "block", "all"}, place);
  return scale_of_two(first, last, normed);
}

// Its weights are feed-forward weights; the family refuses deviations, which would have to know its positions.
BranchScale RoleGains::token_scale(bool normed, const Variables& place) const {
  const double gain = factor({"ffn", "weight", "block", "all"}, place);
  return scale_of_two(gain, gain, normed);
}

BranchScale RoleGains::scale_of_two(double first, double last, bool normed) {
  const double in = first * first, out = last * last;
  if (normed) return {in, 1, 1 / out, 1 / out, 1 / in, 1};
  return {in, out, 1, 1, in == 0 ? 0 : out / in, 1};
}

BranchScale RoleGains::attention_scale(bool normed, const Variables& place) const {
  const auto [q, k, v, o] = attention(place);
  const double sharpness = q * k, value = v * v,
               out = o * o;  // the scores of x are those of sqrt(q k) x with gains 1
  const double scores = (q * q + k * k) / (2 * sharpness * sharpness);
  if (normed) return {sharpness, 1, 1 / out, 1 / out, 1 / value, scores};
  if (attention_values_normed_) return {sharpness, out, 1, 1, out / value, out * scores};
  return {sharpness,         value * out / sharpness, value / sharpness,
          value / sharpness, out / sharpness,         value * out / sharpness * scores};
}

bool RoleGains::values_are_normed(const char* branch) const {
  const auto options = s_.scheme.branch_options.find(branch);
  return options != s_.scheme.branch_options.end() &&
         (options->second.contains("v") || options->second.contains("inner"));
}

}  // namespace norma
