// Numbers from expressions: constants, initial values, schedules and conditions of a scheme.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "norma/schemes/formula.h"

namespace norma {

// What names stand for.
using Variables = std::map<std::string, double>;

// The value of an expression; conditions give 1 or 0. Throws FormulaError with a caret for an unknown name or function
// (and the nearest known one), a wrong number of arguments, or a result that is not finite.
double evaluate(const Expression& expression, const Variables& variables, std::string_view text);

// The same for a whole text such as "(2*N)^(1/4)".
double evaluate(std::string_view text, const Variables& variables);

// The functions that numbers know: sqrt, exp, ln, floor, ceil, abs, mod, min, max, clamp.
std::vector<std::string> number_functions();

// Names that an expression mentions, each once, in order of appearance.
std::vector<std::string> names_in(const Expression& expression);

}  // namespace norma
