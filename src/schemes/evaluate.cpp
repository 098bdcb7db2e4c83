#include "norma/schemes/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "norma/core/names.h"
#include "norma/schemes/functions.h"
#include "norma/schemes/walk.h"

namespace norma {

double NumberAlgebra::finite(const Expression& e, double value) const {
  if (!std::isfinite(value))
    throw FormulaError(text_, e.span,
                       fmt::format("this is {}{}, not a finite number",
                                   std::isnan(value) ? "nan" : fmt::format("{}", value), values_in(e, variables_)));
  return value;
}

std::string values_in(const Expression& expression, const Variables& variables) {
  std::string values;
  for (const std::string& name : names_in(expression)) {
    const auto found = variables.find(name);
    if (found != variables.end())
      values += fmt::format("{} {} = {}", values.empty() ? " with" : ",", name, found->second);
  }
  return values;
}

double NumberAlgebra::text(const Expression& e) const {
  throw FormulaError(text_, e.span, "expected a number but found text");
}

double NumberAlgebra::name(const Expression& e) const {
  const auto found = variables_.find(e.name);
  if (found != variables_.end()) return finite(e, found->second);
  std::vector<std::string> known;
  for (const auto& [variable, unused] : variables_) known.push_back(variable);
  throw FormulaError(text_, e.span, fmt::format("'{}' is not a number here{}", e.name, did_you_mean(e.name, known)));
}

double NumberAlgebra::unary(const Expression& e, double a) const { return finite(e, apply_unary(e.name, a)); }

double NumberAlgebra::binary(const Expression& e, double a, double b) const {
  return finite(e, apply_binary(e.name, a, b));
}

// Conditions stop at the first answer, as in `l > 1 and 1/(l - 1) < 3`.
std::optional<double> NumberAlgebra::answered(const Expression& e, double a) const {
  if (e.name == "and") return a == 0 ? std::optional(0.0) : std::nullopt;
  return a != 0 ? std::optional(1.0) : std::nullopt;
}

void NumberAlgebra::expects(const Expression& e) const {
  const Function* function = find_function(e.name);
  if (function == nullptr || !function->number)
    throw FormulaError(text_, e.span,
                       fmt::format("'{}' is not a function of numbers{}", e.name,
                                   function == nullptr ? did_you_mean(e.name, number_functions())
                                                       : fmt::format(": {}", function->number.why_not)));
  if (e.children.size() != function->arguments.size() || !e.named.empty())
    throw FormulaError(text_, e.span, wrong_count(e, function->arguments.size()));
}

double NumberAlgebra::call(const Expression& e, const std::vector<double>& arguments) const {
  return finite(e, find_function(e.name)->number.value(arguments));
}

double NumberAlgebra::either(const Expression& e, double /*condition*/, double /*yes*/, double /*no*/) const {
  throw InternalError(fmt::format("a condition of numbers was not decided: {}", print_expression(e)));
}

double evaluate(const Expression& expression, const Variables& variables, std::string_view text) {
  NumberAlgebra numbers(variables, text);
  return walk(expression, numbers);
}

double evaluate(std::string_view text, const Variables& variables) {
  return evaluate(*parse_expression(text), variables, text);
}

double apply_unary(std::string_view op, double a) { return op == "-" ? -a : (a == 0 ? 1 : 0); }

double apply_binary(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "/") return a / b;
  if (op == "^") return std::pow(a, b);
  if (op == "and") return a != 0 && b != 0 ? 1 : 0;
  if (op == "or") return a != 0 || b != 0 ? 1 : 0;
  if (op == "<") return a < b ? 1 : 0;
  if (op == "<=") return a <= b ? 1 : 0;
  if (op == ">") return a > b ? 1 : 0;
  if (op == ">=") return a >= b ? 1 : 0;
  return (op == "==") == (a == b) ? 1 : 0;
}

std::string wrong_count(const Expression& call, std::size_t expected) {
  const std::size_t given = call.children.size() + call.named.size();
  return fmt::format("{} takes {} argument{} but {} {} given", call.name, expected, expected == 1 ? "" : "s", given,
                     given == 1 ? "was" : "were");
}

std::vector<std::string> names_in(const Expression& expression) {
  std::vector<std::string> names;
  visit(expression, [&](const Expression& e) {
    if (e.kind == Expression::Kind::name && std::find(names.begin(), names.end(), e.name) == names.end())
      names.push_back(e.name);
  });
  return names;
}

}  // namespace norma
