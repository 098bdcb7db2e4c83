// The learned values of a scheme: what formulas mention, and the parameters behind it.
#pragma once

#include <set>
#include <string>

#include "norma/models/parameters.h"
#include "norma/models/rules.h"
#include "norma/schemes/evaluate.h"
#include "norma/schemes/scheme.h"

namespace norma {

// The names that an expression or a formula mentions at a place with these numbers: where they choose, only what is
// chosen.
void add_names(const Expression& expression, const Variables& numbers, std::set<std::string>& names);
void add_names(const Formula& formula, const Variables& numbers, std::set<std::string>& names);

// Of a place in a stack, d among its numbers.
struct LearnedPlace {
  const std::string& scheme;
  const Variables& numbers;
  const SchemeRules& rules;
};

// What a formula sees under the name of a learned value: a parameter, times a number where another number is stored; or
// a vector of the width for each sample, [batch, 1, d], so that it meets streams, that is made of the condition. Throws
// Error naming the scheme, and NotBuiltError where a condition is asked for and there is none.
Wire learned_value(Parameters& parameters, const LearnedSpec& learned, Wire condition, const LearnedPlace& place);

}  // namespace norma
