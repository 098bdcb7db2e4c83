#include "norma/schemes/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "norma/core/names.h"
#include "norma/graph/graph.h"
#include "norma/norms/norm.h"
#include "norma/ops/elementwise.h"
#include "norma/schemes/branch_kinds.h"
#include "norma/schemes/functions.h"
#include "norma/schemes/scheme.h"
#include "norma/schemes/walk.h"

namespace norma {
namespace {

// Numbers the norm calls of a formula in the order in which they are written.
std::unordered_map<const Expression*, int> norm_sites(const Formula& formula) {
  std::unordered_map<const Expression*, int> sites;
  visit(formula, [&](const Expression& e) {
    if (e.kind != Expression::Kind::call || !is_norm_name(e.name)) return;
    const int next = static_cast<int>(sites.size()) + 1;
    sites.emplace(&e, next);
  });
  return sites;
}

Wire combine(std::string_view op, Wire left, Wire right) {
  return op == "+" ? left + right : op == "-" ? left - right : op == "*" ? left * right : left / right;
}
Wire combine(std::string_view op, Wire left, double right) {
  return op == "+" ? left + right : op == "-" ? left - right : op == "*" ? left * right : left / right;
}
Wire combine(std::string_view op, double left, Wire right) {
  return op == "+" ? left + right : op == "-" ? left - right : op == "*" ? left * right : reciprocal(right) * left;
}

// Numbers as far as they go, then wires: what is done to a wire appends nodes to its graph.
class WireAlgebra {
  using Branch = std::function<Wire(Wire, const BranchOptions&)>;

 public:
  using Value = Traced;

  WireAlgebra(const Formula& formula, Surroundings& surroundings)
      : formula_(formula),
        s_(surroundings),
        numbers_(surroundings.numbers, formula.text),
        sites_(norm_sites(formula)) {}

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
      s_.wires[target] = wire(*statement.value, walk(*statement.value, *this));
    }
  }

  Traced number(const Expression& e) const { return numbers_.number(e); }
  Traced text(const Expression& e) const { error(e, "text has no value here"); }

  Traced name(const Expression& e) const {
    // Wires first: a stream may be called d, which is also the width.
    if (const auto found = s_.wires.find(e.name); found != s_.wires.end()) return found->second;
    if (const auto found = s_.numbers.find(e.name); found != s_.numbers.end()) return found->second;
    if (e.name == "t" || e.name == "T")
      error(e,
            fmt::format("'{}' is known to constants alone: give one a name under [constants] in a scheme file, as in "
                        "s = \"min(t/1000, 1)\", and write s here",
                        e.name));
    std::vector<std::string> known;
    for (const auto& [wire_name, unused] : s_.wires) known.push_back(wire_name);
    for (const auto& [number_name, unused] : s_.numbers) known.push_back(number_name);
    const std::string nearest = did_you_mean(e.name, known);
    error(e, fmt::format("'{}' is not known here{}", e.name,
                         nearest.empty() ? "; a constant is a number, as in x + 0.5*f(x), or has a name under "
                                           "[constants] in a scheme file"
                                         : nearest));
  }

  Traced unary(const Expression& e, const Traced& a) const {
    const double* value = std::get_if<double>(&a);
    if (value != nullptr) return numbers_.unary(e, *value);
    if (e.name == "not") error(*e.children[0], kExpectedNumber);
    return -std::get<Wire>(a);
  }

  Traced binary(const Expression& e, const Traced& left, const Traced& right) const {
    const double *a = std::get_if<double>(&left), *b = std::get_if<double>(&right);
    if (a != nullptr && b != nullptr) return numbers_.binary(e, *a, *b);
    if (e.name != "+" && e.name != "-" && e.name != "*" && e.name != "/") needs_numbers(e);
    if (e.name == "/" && b != nullptr && *b == 0)
      error(*e.children[1], "this divisor is zero" + values_in(*e.children[1], s_.numbers));
    try {
      if (a != nullptr) return combine(e.name, *a, std::get<Wire>(right));
      return b != nullptr ? combine(e.name, std::get<Wire>(left), *b)
                          : both(e.name, std::get<Wire>(left), std::get<Wire>(right));
    } catch (const Error& problem) {
      error(e, problem.what());
    }
  }

  std::optional<Traced> answered(const Expression& e, const Traced& a) const {
    if (mentions_wire(e)) needs_numbers(e);
    return numbers_.answered(e, std::get<double>(a));
  }

  std::optional<bool> decides(const Expression& e, const Traced& condition) const {
    return numeric(*e.children[0], condition) != 0;
  }

  Traced either(const Expression& e, const Traced&, const Traced&, const Traced&) const {
    throw InternalError(fmt::format("a condition of numbers was not decided: {}", print_expression(e)));
  }

  void expects(const Expression& e) const {
    if (s_.branches.contains(e.name)) return only_one(e);
    if (!e.named.empty()) error(e, fmt::format("{} has no argument named '{}'", e.name, e.named[0].name));
    if (is_norm_name(e.name)) return only_one(e);
    const Function* function = find_function(e.name);
    if (function == nullptr) unknown(e);
    if (e.children.size() != function->arguments.size()) error(e, wrong_count(e, function->arguments.size()));
    if (!function->wire && mentions_wire(e))
      error(e, fmt::format("{} is a function of numbers, but '{}' is a wire", e.name, *mentions_wire(e)));
  }

  Traced call(const Expression& e, const std::vector<Traced>& arguments) const {
    if (const auto branch = s_.branches.find(e.name); branch != s_.branches.end())
      return branch_call(e, branch->second, wire(*e.children[0], arguments[0]));
    if (is_norm_name(e.name))
      return s_.norm(e.name, fmt::format("norm{}", sites_.at(&e)), wire(*e.children[0], arguments[0]));
    const Function& function = *find_function(e.name);
    const bool of_numbers = function.number && std::holds_alternative<double>(arguments[0]);
    return of_numbers || !function.wire ? number_call(e, arguments) : wire_call(e, function, arguments);
  }

 private:
  static constexpr std::string_view kExpectedNumber = "this is a wire; expected a number";
  static constexpr std::string_view kExpectedWire = "this is a number; expected a wire such as x";

  [[noreturn]] void error(const Expression& e, std::string_view message) const {
    throw FormulaError(formula_.text, e.span, message);
  }

  Wire both(std::string_view op, Wire left, Wire right) const {
    const bool sum = op == "+" || op == "-";
    if (!sum || !s_.fit || left.shape() == right.shape()) return combine(op, left, right);
    return combine(op, s_.fit(left, right.shape()), s_.fit(right, left.shape()));
  }

  Wire wire(const Expression& e, const Traced& value) const {
    if (const Wire* result = std::get_if<Wire>(&value)) return *result;
    error(e, kExpectedWire);
  }

  double numeric(const Expression& e, const Traced& value) const {
    if (const double* result = std::get_if<double>(&value)) return *result;
    error(e, kExpectedNumber);
  }

  // The first name in it that is a wire.
  std::optional<std::string> mentions_wire(const Expression& e) const {
    for (const std::string& used : names_in(e)) {
      if (s_.wires.contains(used)) return used;
    }
    return std::nullopt;
  }

  [[noreturn]] void needs_numbers(const Expression& e) const {
    error(e, fmt::format("{} needs numbers, but '{}' is a wire", e.name, mentions_wire(e).value_or("this")));
  }

  void only_one(const Expression& e) const {
    if (e.children.size() != 1)
      error(e, fmt::format("{} takes one argument but {} were given", e.name, e.children.size()));
  }

  Traced number_call(const Expression& e, const std::vector<Traced>& arguments) const {
    std::vector<double> numbers;
    for (std::size_t i = 0; i < arguments.size(); ++i) numbers.push_back(numeric(*e.children[i], arguments[i]));
    return numbers_.call(e, numbers);
  }

  Wire wire_call(const Expression& e, const Function& function, const std::vector<Traced>& arguments) const {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      function.arguments[i] == 'w' ? void(wire(*e.children[i], arguments[i]))
                                   : void(numeric(*e.children[i], arguments[i]));
    try {
      return function.wire.value(arguments);
    } catch (const Error& problem) {
      error(e, problem.what());
    }
  }

  Wire branch_call(const Expression& e, const Branch& branch, Wire in) const {
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

  const Formula& formula_;
  Surroundings& s_;
  NumberAlgebra numbers_;
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

void trace(const Formula& formula, Surroundings& surroundings) { WireAlgebra(formula, surroundings).run(); }

}  // namespace norma
