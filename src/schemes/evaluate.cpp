#include "norma/schemes/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "norma/core/names.h"

namespace norma {
namespace {

struct Function {
  std::string_view name;
  std::size_t arguments;
  double (*apply)(std::span<const double>);
};

constexpr std::array kFunctions = {
    Function{"sqrt", 1, [](std::span<const double> a) { return std::sqrt(a[0]); }},
    Function{"exp", 1, [](std::span<const double> a) { return std::exp(a[0]); }},
    Function{"ln", 1, [](std::span<const double> a) { return std::log(a[0]); }},
    Function{"floor", 1, [](std::span<const double> a) { return std::floor(a[0]); }},
    Function{"ceil", 1, [](std::span<const double> a) { return std::ceil(a[0]); }},
    Function{"abs", 1, [](std::span<const double> a) { return std::abs(a[0]); }},
    Function{"mod", 2, [](std::span<const double> a) { return a[0] - a[1] * std::floor(a[0] / a[1]); }},
    Function{"min", 2, [](std::span<const double> a) { return std::min(a[0], a[1]); }},
    Function{"max", 2, [](std::span<const double> a) { return std::max(a[0], a[1]); }},
    Function{"clamp", 3, [](std::span<const double> a) { return std::min(std::max(a[0], a[1]), a[2]); }},
};

class Evaluator {
 public:
  Evaluator(const Variables& variables, std::string_view text) : variables_(variables), text_(text) {}

  double value(const Expression& e) const {
    const double result = raw(e);
    if (!std::isfinite(result)) error(e, fmt::format("this is {}, not a finite number", result));
    return result;
  }

 private:
  [[noreturn]] void error(const Expression& e, std::string_view message) const {
    throw FormulaError(text_, e.span, message);
  }

  double raw(const Expression& e) const {
    switch (e.kind) {
      case Expression::Kind::number: return e.number;
      case Expression::Kind::name: return name(e);
      case Expression::Kind::text: error(e, "expected a number but found text");
      case Expression::Kind::unary:
        return e.name == "-" ? -value(*e.children[0]) : (value(*e.children[0]) == 0 ? 1 : 0);
      case Expression::Kind::binary: return binary(e);
      case Expression::Kind::call: return call(e);
      case Expression::Kind::conditional: return value(value(*e.children[0]) != 0 ? *e.children[1] : *e.children[2]);
    }
    error(e, "this is not a number");
  }

  double name(const Expression& e) const {
    const auto found = variables_.find(e.name);
    if (found != variables_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [variable, unused] : variables_) known.push_back(variable);
    error(e, fmt::format("'{}' is not a number here{}", e.name, did_you_mean(e.name, known)));
  }

  double binary(const Expression& e) const {
    const double left = value(*e.children[0]);
    // Conditions stop at the first answer, as in `l > 1 and 1/(l - 1) < 3`.
    if (e.name == "and") return left != 0 && value(*e.children[1]) != 0 ? 1 : 0;
    if (e.name == "or") return left != 0 || value(*e.children[1]) != 0 ? 1 : 0;
    const double right = value(*e.children[1]);
    if (e.name == "+") return left + right;
    if (e.name == "-") return left - right;
    if (e.name == "*") return left * right;
    if (e.name == "/") return left / right;
    if (e.name == "^") return std::pow(left, right);
    if (e.name == "<") return left < right ? 1 : 0;
    if (e.name == "<=") return left <= right ? 1 : 0;
    if (e.name == ">") return left > right ? 1 : 0;
    if (e.name == ">=") return left >= right ? 1 : 0;
    if (e.name == "==") return left == right ? 1 : 0;
    return left != right ? 1 : 0;
  }

  double call(const Expression& e) const {
    const auto* function =
        std::find_if(kFunctions.begin(), kFunctions.end(), [&](const Function& f) { return f.name == e.name; });
    if (function == kFunctions.end()) {
      error(e, fmt::format("'{}' is not a function of numbers{}", e.name, did_you_mean(e.name, number_functions())));
    }
    if (e.children.size() != function->arguments || !e.named.empty()) {
      error(e, fmt::format("{} takes {} argument{} but {} were given", e.name, function->arguments,
                           function->arguments == 1 ? "" : "s", e.children.size() + e.named.size()));
    }
    std::vector<double> arguments;
    for (const ExpressionPtr& child : e.children) arguments.push_back(value(*child));
    return function->apply(arguments);
  }

  const Variables& variables_;
  std::string_view text_;
};

void collect_names(const Expression& e, std::vector<std::string>& names) {
  if (e.kind == Expression::Kind::name && std::find(names.begin(), names.end(), e.name) == names.end())
    names.push_back(e.name);
  for (const ExpressionPtr& child : e.children) collect_names(*child, names);
  for (const NamedArgument& argument : e.named) collect_names(*argument.value, names);
}

}  // namespace

double evaluate(const Expression& expression, const Variables& variables, std::string_view text) {
  return Evaluator(variables, text).value(expression);
}

double evaluate(std::string_view text, const Variables& variables) {
  return evaluate(*parse_expression(text), variables, text);
}

std::vector<std::string> number_functions() {
  std::vector<std::string> names;
  for (const Function& function : kFunctions) names.emplace_back(function.name);
  return names;
}

std::vector<std::string> names_in(const Expression& expression) {
  std::vector<std::string> names;
  collect_names(expression, names);
  return names;
}

}  // namespace norma
