#include "norma/models/rules.h"

#include "norma/core/error.h"

namespace norma {
namespace {

std::optional<double> rule(const std::map<std::string, double>& rules, std::string_view role) {
  if (rules.empty()) return std::nullopt;
  for (const std::string& name : role_chain(role)) {
    if (const auto found = rules.find(name); found != rules.end()) return found->second;
  }
  return std::nullopt;
}

double agreed(const char* what, const std::map<std::string, double>& rules, std::span<const std::string> roles) {
  const double first = rule(rules, roles[0]).value_or(1);
  for (const std::string& role : roles) {
    const double other = rule(rules, role).value_or(1);
    if (other != first)
      fail("the rule {} gives {} for {} and {} for {}, which are one matrix", what, first, roles[0], other, role);
  }
  return first;
}

}  // namespace

std::vector<std::string> role_chain(std::string_view role) {
  const std::string name(role);
  if (name == "embedding" || name == "head" || name == "final") return {name, "all"};
  if (name == "position") return {name, "embedding", "all"};
  if (name == "norm" || name == "bias" || name == "learned") return {name, "block", "all"};
  if (name.starts_with("cross_")) return {name, name.substr(6), "weight", "block", "all"};
  // Where a scheme has no rule for convolutions, they take those of feed-forward weights: both are all of a branch.
  if (name == "conv") return {name, "ffn", "weight", "block", "all"};
  if (name == "conv_skip" || name == "condition") return {name, "block", "all"};
  if (name == "conv_out") return {name, "conv", "ffn", "weight", "block", "all"};
  return {name, "weight", "block", "all"};
}

double InitRules::gain_of(std::string_view role) const { return rule(gain, role).value_or(1); }
std::optional<double> InitRules::deviation_of(std::string_view role) const { return rule(deviation, role); }

void OptimiserRules::apply(std::span<const std::string> roles, ParameterSpec& spec) const {
  spec.lr *= agreed("lr", lr, roles);
  spec.eps *= agreed("eps", eps, roles);
  spec.decay *= agreed("decay", decay, roles);
}

void OptimiserRules::apply(std::string_view role, ParameterSpec& spec) const {
  const std::string roles[] = {std::string(role)};
  apply(roles, spec);
}

SchemeRules rules_of(const Scheme& scheme, const Variables& numbers) {
  SchemeRules rules;
  std::map<std::string, std::map<std::string, double>*> tables = {{"init.gain", &rules.init.gain},
                                                                  {"init.std", &rules.init.deviation},
                                                                  {"lr", &rules.optimiser.lr},
                                                                  {"eps", &rules.optimiser.eps},
                                                                  {"decay", &rules.optimiser.decay}};
  for (const auto& [name, entries] : scheme.rules) {
    for (const NamedExpression& entry : entries)
      (*tables.at(name))[entry.name] = evaluate(*entry.value, numbers, print_expression(*entry.value));
  }
  if (const ExpressionPtr& scale = scheme.embedding.scale; scale != nullptr)
    rules.token_scale = evaluate(*scale, numbers, print_expression(*scale));
  return rules;
}

}  // namespace norma
