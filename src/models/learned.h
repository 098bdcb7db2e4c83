// How a learned value of a scheme starts.
#pragma once

#include <set>
#include <string>

#include "norma/models/parameters.h"
#include "norma/models/rules.h"
#include "norma/schemes/evaluate.h"
#include "norma/schemes/scheme.h"

namespace norma {

struct LearnedStart {
  Shape shape;
  ParameterSpec spec;
  double factor = 1;  // between what is stored and what a formula sees
};

// The names that an expression or a formula mentions at a place with these numbers: where they choose, only what is
// chosen.
void add_names(const Expression& expression, const Variables& numbers, std::set<std::string>& names);
void add_names(const Formula& formula, const Variables& numbers, std::set<std::string>& names);

// At a place with these numbers, d among them. Throws Error naming the scheme.
LearnedStart start_of(const LearnedSpec& learned, const Variables& numbers, const std::string& scheme);

// Of a place in a stack.
struct LearnedPlace {
  const std::string& scheme;
  const Variables& numbers;
  const SchemeRules& rules;
};

// A vector of the width for each sample, [batch, 1, d], so that it meets streams: condition W + b, in a scope of its
// name. Throws NotBuiltError where there is no condition.
Wire made_of_condition(Parameters& parameters, const LearnedSpec& learned, Wire condition, const LearnedPlace& place);

}  // namespace norma
