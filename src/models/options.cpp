#include "models/options.h"

#include <algorithm>

#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {

BranchChoice::BranchChoice(const Scheme& scheme, const BranchKind& kind, const BranchOptions& given,
                           const Variables& numbers)
    : scheme_(scheme.name), branch_(kind.key), numbers_(numbers) {
  if (const auto found = scheme.branch_options.find(branch_); found != scheme.branch_options.end())
    options_ = found->second;
  const auto knows = [](const BranchKind& one, const std::string& name) {
    return std::find(one.options.begin(), one.options.end(), name) != one.options.end();
  };
  // A formula for every sublayer speaks to branches of all kinds; each takes the options that it knows.
  const bool for_all = scheme.formula("sublayer") != nullptr && scheme.formula(kind.key) == nullptr;
  for (const auto& [name, value] : given) {
    const auto knows_it = [&, option = name](const BranchKind& one) { return knows(one, option); };
    if (knows(kind, name)) {
      options_[name] = value;
    } else if (!for_all || std::ranges::none_of(branch_kinds(), knows_it)) {
      throw BranchOptionError(name,
                              fmt::format("{} has no option '{}'{}", branch_, name, did_you_mean(name, kind.options)));
    }
  }
}

std::string BranchChoice::text(const std::string& option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? "" : found->second;
}

std::optional<double> BranchChoice::number(const std::string& option) const {
  const std::string expression = text(option);
  if (expression.empty()) return std::nullopt;
  return evaluate(expression, numbers_);
}

std::optional<StoredGain> BranchChoice::gain(const std::string& option, const std::string& stored) const {
  const std::optional<double> start = number(option);
  if (!start) return std::nullopt;
  const StoredGain gain{*start, number(stored).value_or(*start)};
  if (gain.stored == 0) fail("scheme '{}': branch.{}.{} must not start at 0", scheme_, branch_, option);
  return gain;
}

AttentionExtras BranchChoice::attention(const std::string& qk_norm, Wire& carried) const {
  AttentionExtras extras{.q_norm = text("q"), .k_norm = text("k"), .v_norm = text("v")};
  extras.norm_width = text("width") == "full" ? AttentionExtras::Width::full : AttentionExtras::Width::head;
  if (extras.q_norm.empty() && extras.k_norm.empty()) extras.q_norm = extras.k_norm = qk_norm;
  extras.inner_norm = text("inner");
  extras.head_gain = !text("head_gain").empty();
  extras.carried_scores = text("scores").empty() ? nullptr : &carried;
  extras.scale = number("scale");
  extras.qk_gain = gain("qk_gain", "qk_gain_stored");
  return extras;
}

}  // namespace norma
