// Rules of a run for groups of parameters, on top of those of its scheme.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "norma/models/parameters.h"

namespace norma {

// By group: a role ("embedding", "norm", ...) or a name in which * stands for anything ("layers.0.*"). The longest
// pattern that fits a parameter holds; "embedding" holds for positions too where nothing else fits them. `lr` and `eps`
// multiply what the scheme says; `decay` replaces it, so that 1 is the full weight decay and 0 none.
struct GroupRules {
  std::map<std::string, double> lr, decay, eps;
};

bool matches(std::string_view pattern, std::string_view name);

// Writes the rules into the parameters. Biases, norms and learned values that are no matrices do not decay unless
// `decay_vectors` or a rule says so, or, of learned values, their scheme. Throws Error for a pattern that fits no
// parameter.
void apply_groups(const GroupRules& rules, bool decay_vectors, std::span<ParameterSpec> parameters);

}  // namespace norma
