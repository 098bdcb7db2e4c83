#include "norma/train/groups.h"

#include <fmt/ranges.h>

#include <optional>
#include <set>

#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

// How closely a pattern fits: the longest wins, and what is meant for all tables gives way to everything.
std::optional<std::size_t> fit_of(const std::string& pattern, const ParameterSpec& spec) {
  if (pattern == spec.role || matches(pattern, spec.name)) return pattern.size();
  if (pattern == "embedding" && spec.role == "position") return 0;
  return std::nullopt;
}

void require_use(const char* table, const std::map<std::string, double>& rules,
                 std::span<const ParameterSpec> parameters) {
  for (const auto& [pattern, value] : rules) {
    bool used = false;
    std::set<std::string> roles;
    for (const ParameterSpec& spec : parameters) {
      used |= fit_of(pattern, spec).has_value();
      roles.insert(spec.role);
    }
    if (used) continue;
    std::vector<std::string> known(roles.begin(), roles.end());
    for (const ParameterSpec& spec : parameters) known.push_back(spec.name);
    fail(
        "groups.{}: '{}' fits no parameter{}; expected a role ({}) or a name such as '{}', where * stands for anything",
        table, pattern, did_you_mean(pattern, known), fmt::join(roles, ", "), parameters.front().name);
  }
}

std::optional<double> rule_for(const std::map<std::string, double>& rules, const ParameterSpec& spec) {
  std::optional<std::size_t> closest;
  std::optional<double> value;
  for (const auto& [pattern, here] : rules) {
    const std::optional<std::size_t> fit = fit_of(pattern, spec);
    if (!fit || (closest && *fit <= *closest)) continue;
    closest = fit;
    value = here;
  }
  return value;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  // The last star takes more and more until the rest fits.
  std::size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

void apply_groups(const GroupRules& rules, bool decay_vectors, std::span<ParameterSpec> parameters) {
  require_use("lr", rules.lr, parameters);
  require_use("decay", rules.decay, parameters);
  require_use("eps", rules.eps, parameters);
  for (ParameterSpec& spec : parameters) {
    spec.lr *= rule_for(rules.lr, spec).value_or(1);
    spec.eps *= rule_for(rules.eps, spec).value_or(1);
    const bool vector = spec.role == "bias" || spec.role == "norm" || spec.decays_as_vector;
    spec.decay = rule_for(rules.decay, spec).value_or(vector && !decay_vectors ? 0 : spec.decay);
  }
}

}  // namespace norma
