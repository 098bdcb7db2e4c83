// What a scheme says about weights by role: how they start, and what multiplies learning rate, eps and decay.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/models/parameters.h"
#include "norma/schemes/evaluate.h"
#include "norma/schemes/scheme.h"

namespace norma {

// Roles of a rule, the nearest first: "cross_value", then "value", "weight", "block", "all".
std::vector<std::string> role_chain(std::string_view role);

// What multiplies the Xavier gain, by role, and standard deviations that replace Xavier altogether.
struct InitRules {
  std::map<std::string, double> gain = {};
  std::map<std::string, double> deviation = {};

  double gain_of(std::string_view role) const;                      // 1 unless given
  std::optional<double> deviation_of(std::string_view role) const;  // none unless given
};

// Factors on what the optimiser is told.
struct OptimiserRules {
  std::map<std::string, double> lr = {}, eps = {}, decay = {};

  // Sets the factors of a parameter that plays these roles; several share one tensor only where they agree.
  void apply(std::span<const std::string> roles, ParameterSpec& spec) const;
  void apply(std::string_view role, ParameterSpec& spec) const;
};

struct SchemeRules {
  InitRules init;
  OptimiserRules optimiser;
  std::optional<double> token_scale = {};  // what multiplies tokens; none unless given
};
SchemeRules rules_of(const Scheme& scheme, const Variables& numbers);

}  // namespace norma
