#include "models/options.h"

#include <algorithm>

#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {

BranchChoice::BranchChoice(const Scheme& scheme, std::string_view branch, const BranchOptions& given,
                           const Variables& numbers)
    : scheme_(scheme.name), branch_(branch), numbers_(numbers) {
  if (const auto found = scheme.branch_options.find(branch_); found != scheme.branch_options.end())
    options_ = found->second;
  const auto knows = [](std::string_view kind, const std::string& name) {
    const std::vector<std::string>& known = branch_option_names(kind);
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  // A formula for every sublayer speaks to branches of all kinds; each takes the options that it knows.
  const bool for_all = scheme.formula("sublayer") != nullptr && scheme.formula(branch) == nullptr;
  for (const auto& [name, value] : given) {
    if (knows(branch, name)) {
      options_[name] = value;
    } else if (!for_all || !knows(branch == "ffn" ? "attention" : "ffn", name)) {
      throw BranchOptionError(
          name, fmt::format("{} has no option '{}'{}", branch_, name, did_you_mean(name, branch_option_names(branch))));
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
