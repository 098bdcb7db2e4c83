// Numbers from expressions: constants, initial values, schedules and conditions of a scheme.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/schemes/formula.h"

namespace norma {

// What names stand for.
using Variables = std::map<std::string, double>;

// The algebra of numbers (walk.h): conditions give 1 or 0, and every value is finite. Others fall back on it where all
// operands are numbers. Throws FormulaError with a caret for an unknown name or function (and the nearest known one), a
// wrong number of arguments, or a result that is not finite.
class NumberAlgebra {
 public:
  using Value = double;

  NumberAlgebra(const Variables& variables, std::string_view text) : variables_(variables), text_(text) {}

  double number(const Expression& e) const { return finite(e, e.number); }
  double text(const Expression& e) const;
  double name(const Expression& e) const;
  double unary(const Expression& e, double a) const;
  double binary(const Expression& e, double a, double b) const;
  std::optional<double> answered(const Expression& e, double a) const;
  void expects(const Expression& e) const;
  double call(const Expression& e, const std::vector<double>& arguments) const;
  std::optional<bool> decides(const Expression& /*e*/, double condition) const { return condition != 0; }
  double either(const Expression& e, double condition, double yes, double no) const;

 private:
  double finite(const Expression& e, double value) const;

  const Variables& variables_;
  std::string_view text_;
};

// The value of an expression, and of a whole text such as "(2*N)^(1/4)".
double evaluate(const Expression& expression, const Variables& variables, std::string_view text);
double evaluate(std::string_view text, const Variables& variables);

// An operator on numbers, by its name; what is not finite stays so.
double apply_unary(std::string_view op, double a);
double apply_binary(std::string_view op, double a, double b);

// " with l = 1, N = 6": what the names of an expression stand for; empty where it mentions none of them.
std::string values_in(const Expression& expression, const Variables& variables);

// "sqrt takes 1 argument but 2 were given".
std::string wrong_count(const Expression& call, std::size_t expected);

// Names that an expression mentions, each once, in order of appearance.
std::vector<std::string> names_in(const Expression& expression);

}  // namespace norma
