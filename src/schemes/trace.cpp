#include "norma/schemes/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "norma/core/names.h"
#include "norma/graph/graph.h"
#include "norma/norms/norm.h"
#include "norma/ops/elementwise.h"
#include "norma/schemes/scheme.h"
#include "schemes/wire_functions.h"

namespace norma {
namespace {

// Numbers the norm calls of a formula in the order in which they are written.
void number_norms(const Expression& e, std::unordered_map<const Expression*, int>& sites) {
  if (e.kind == Expression::Kind::call && is_norm_name(e.name)) {
    const int next = static_cast<int>(sites.size()) + 1;
    sites.emplace(&e, next);
  }
  for (const ExpressionPtr& child : e.children) number_norms(*child, sites);
}

class Tracer {
  using Branch = std::function<Wire(Wire, const BranchOptions&)>;

 public:
  Tracer(const Formula& formula, Surroundings& surroundings) : formula_(formula), s_(surroundings) {
    for (const Statement& statement : formula.statements) number_norms(*statement.value, sites_);
  }

  void run() {
    for (const Statement& statement : formula_.statements) {
      const std::string target = statement.target.empty() ? "x" : statement.target;
      if (is_norm_name(target)) {
        throw FormulaError(formula_.text, statement.target_span,
                           fmt::format("assigns to '{}', which is a norm; choose another name", target));
      }
      if (s_.numbers.contains(target) || s_.branches.contains(target)) {
        throw FormulaError(formula_.text, statement.target_span,
                           fmt::format("'{}' already has a meaning and cannot be assigned to", target));
      }
      s_.wires[target] = wire(*statement.value);
    }
  }

 private:
  [[noreturn]] void error(const Expression& e, std::string_view message) const {
    throw FormulaError(formula_.text, e.span, message);
  }

  Wire wire(const Expression& e) const {
    const Traced value = trace(e);
    if (const Wire* result = std::get_if<Wire>(&value)) return *result;
    error(e, "this is a number; expected a wire such as x");
  }

  double number(const Expression& e) const {
    const Traced value = trace(e);
    if (const double* result = std::get_if<double>(&value)) return *result;
    error(e, "this is a wire; expected a number");
  }

  Traced trace(const Expression& e) const {
    switch (e.kind) {
      case Expression::Kind::number: return e.number;
      case Expression::Kind::text: error(e, "text has no value here");
      case Expression::Kind::name: return name(e);
      case Expression::Kind::unary: return unary(e);
      case Expression::Kind::binary: return binary(e);
      case Expression::Kind::call: return call(e);
      case Expression::Kind::conditional: return trace(number(*e.children[0]) != 0 ? *e.children[1] : *e.children[2]);
    }
    error(e, "this has no value");
  }

  Traced name(const Expression& e) const {
    // Wires first: a stream may be called d, which is also the width.
    if (const auto found = s_.wires.find(e.name); found != s_.wires.end()) return found->second;
    if (const auto found = s_.numbers.find(e.name); found != s_.numbers.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [wire_name, unused] : s_.wires) known.push_back(wire_name);
    for (const auto& [number_name, unused] : s_.numbers) known.push_back(number_name);
    error(e, fmt::format("'{}' is not known here{}", e.name, did_you_mean(e.name, known)));
  }

  Traced unary(const Expression& e) const {
    if (e.name == "not") return number(*e.children[0]) == 0 ? 1.0 : 0.0;
    const Traced value = trace(*e.children[0]);
    if (const double* result = std::get_if<double>(&value)) return -*result;
    return -std::get<Wire>(value);
  }

  Traced binary(const Expression& e) const {
    const bool arithmetic = e.name == "+" || e.name == "-" || e.name == "*" || e.name == "/";
    if (!arithmetic) {  // powers, comparisons, and, or: numbers only, and `and` must not look at its right side too
                        // early
      Variables numbers = s_.numbers;
      for (const std::string& used : names_in(e)) {
        if (s_.wires.contains(used)) error(e, fmt::format("{} needs numbers, but '{}' is a wire", e.name, used));
      }
      return evaluate(e, numbers, formula_.text);
    }
    const Traced left = trace(*e.children[0]), right = trace(*e.children[1]);
    const double *a = std::get_if<double>(&left), *b = std::get_if<double>(&right);
    if (a != nullptr && b != nullptr) return evaluate(e, s_.numbers, formula_.text);
    if (e.name == "/" && b != nullptr && *b == 0) error(*e.children[1], "this is zero");
    try {
      if (a != nullptr) return combine(e.name, *a, std::get<Wire>(right));
      return b != nullptr ? combine(e.name, std::get<Wire>(left), *b)
                          : combine(e.name, std::get<Wire>(left), std::get<Wire>(right));
    } catch (const Error& problem) {
      error(e, problem.what());
    }
  }

  static Wire combine(const std::string& name, Wire left, Wire right) {
    return name == "+" ? left + right : name == "-" ? left - right : name == "*" ? left * right : left / right;
  }
  static Wire combine(const std::string& name, Wire left, double right) {
    return name == "+" ? left + right : name == "-" ? left - right : name == "*" ? left * right : left / right;
  }
  static Wire combine(const std::string& name, double left, Wire right) {
    return name == "+"   ? left + right
           : name == "-" ? left - right
           : name == "*" ? left * right
                         : reciprocal(right) * left;
  }

  Traced call(const Expression& e) const {
    if (const auto branch = s_.branches.find(e.name); branch != s_.branches.end())
      return branch_call(e, branch->second);
    if (!e.named.empty()) error(e, fmt::format("{} has no argument named '{}'", e.name, e.named[0].name));
    if (is_norm_name(e.name)) return s_.norm(e.name, fmt::format("norm{}", sites_.at(&e)), wire(only_argument(e)));
    const std::vector<std::string> functions = number_functions();
    const bool of_numbers = std::find(functions.begin(), functions.end(), e.name) != functions.end();
    if (const WireFunction* function = find_wire_function(e.name)) return wire_call(e, *function, of_numbers);
    if (of_numbers) {
      for (const std::string& used : names_in(e)) {
        if (s_.wires.contains(used))
          error(e, fmt::format("{} is a function of numbers, but '{}' is a wire", e.name, used));
      }
      return evaluate(e, s_.numbers, formula_.text);
    }
    unknown(e);
  }

  // Some functions know numbers as well as wires.
  Traced wire_call(const Expression& e, const WireFunction& function, bool of_numbers) const {
    if (e.children.size() != function.arguments.size()) {
      error(e, fmt::format("{} takes {} argument{} but {} were given", e.name, function.arguments.size(),
                           function.arguments.size() == 1 ? "" : "s", e.children.size()));
    }
    std::vector<Traced> arguments;
    for (const ExpressionPtr& child : e.children) arguments.push_back(trace(*child));
    if (of_numbers && std::holds_alternative<double>(arguments[0])) return evaluate(e, s_.numbers, formula_.text);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const bool is_wire = std::holds_alternative<Wire>(arguments[i]);
      if (is_wire == (function.arguments[i] == 'w')) continue;
      error(*e.children[i],
            is_wire ? "this is a wire; expected a number" : "this is a number; expected a wire such as x");
    }
    try {
      return function.apply(arguments);
    } catch (const Error& problem) {
      error(e, problem.what());
    }
  }

  Wire branch_call(const Expression& e, const Branch& branch) const {
    const Wire in = wire(only_argument(e));
    try {
      return branch(in, options(e));
    } catch (const BranchOptionError& problem) {
      for (const NamedArgument& argument : e.named) {
        if (argument.name == problem.option()) throw FormulaError(formula_.text, argument.span, problem.what());
      }
      throw;
    }
  }

  static BranchOptions options(const Expression& e) {
    BranchOptions given;
    for (const NamedArgument& argument : e.named) {
      const Expression& value = *argument.value;
      const std::string text = value.kind == Expression::Kind::text ? value.name : print_expression(value);
      try {
        check_branch_option(argument.name, text);
      } catch (const Error& problem) {
        throw BranchOptionError(argument.name, problem.what());
      }
      given[argument.name] = text;
    }
    return given;
  }

  [[noreturn]] void unknown(const Expression& e) const {
    std::vector<std::string> known = number_functions();
    for (std::string& function : wire_functions()) known.push_back(std::move(function));
    for (const auto& [branch_name, unused] : s_.branches) known.push_back(branch_name);
    for (const char* name : {"norm", "dyt"}) known.emplace_back(name);
    for (const NormInfo& info : norms()) known.push_back(std::string(info.name) + "norm");
    error(e, fmt::format("there is no function '{}' here{}", e.name, did_you_mean(e.name, known)));
  }

  const Expression& only_argument(const Expression& e) const {
    if (e.children.size() != 1)
      error(e, fmt::format("{} takes one argument but {} were given", e.name, e.children.size()));
    return *e.children[0];
  }

  const Formula& formula_;
  Surroundings& s_;
  std::unordered_map<const Expression*, int> sites_;
};

}  // namespace

bool is_norm_name(std::string_view name) {
  if (name == "norm" || name == "dyt") return true;
  if (!name.ends_with("norm")) return false;
  const std::string_view kind = name.substr(0, name.size() - 4);
  const auto all = norms();
  return std::any_of(all.begin(), all.end(), [&](const NormInfo& info) { return info.name == kind; });
}

const NormInfo& norm_called(std::string_view name, NormKind configured) {
  if (name == "norm") return norm(configured);
  const auto all = norms();
  const auto known = std::find_if(all.begin(), all.end(), [&](const NormInfo& info) { return info.name == name; });
  if (known != all.end()) return *known;
  if (is_norm_name(name)) return norm(name.substr(0, name.size() - 4));
  std::vector<std::string> names = {"norm", "dyt", "unit"};
  for (const NormInfo& info : all) names.push_back(std::string(info.name) + "norm");
  fail("'{}' is not a norm; expected norm, layernorm, rmsnorm, dyt, ...{}", name, did_you_mean(name, names));
}

void trace(const Formula& formula, Surroundings& surroundings) { Tracer(formula, surroundings).run(); }

}  // namespace norma
