// Prints a syntax tree back in canonical spelling, with only the parentheses that precedence needs.
#include <fmt/format.h>

#include <cmath>

#include "norma/schemes/formula.h"

namespace norma {
namespace {

// How tightly an expression binds; an operand that binds less tightly than its place needs parentheses.
enum Level { kConditional, kOr, kAnd, kNot, kComparison, kSum, kProduct, kUnary, kPower, kPrimary };

Level level_of(const Expression& e) {
  switch (e.kind) {
    case Expression::Kind::conditional: return kConditional;
    case Expression::Kind::unary: return e.name == "not" ? kNot : kUnary;
    case Expression::Kind::binary:
      if (e.name == "or") return kOr;
      if (e.name == "and") return kAnd;
      if (e.name == "+" || e.name == "-") return kSum;
      if (e.name == "*" || e.name == "/") return kProduct;
      if (e.name == "^") return kPower;
      return kComparison;
    default: return kPrimary;
  }
}

std::string print_at(const Expression& e, Level least);

std::string print_call(const Expression& e) {
  std::string arguments;
  const auto add = [&](const std::string& text) { arguments += (arguments.empty() ? "" : ", ") + text; };
  for (const ExpressionPtr& child : e.children) add(print_at(*child, kConditional));
  for (const NamedArgument& argument : e.named) add(argument.name + " = " + print_at(*argument.value, kConditional));
  return fmt::format("{}({})", e.name, arguments);
}

std::string print_binary(const Expression& e) {
  const Expression &left = *e.children[0], &right = *e.children[1];
  const Level level = level_of(e);
  const auto next = static_cast<Level>(level + 1);
  switch (level) {
    // A power's base is a primary; its exponent may carry a sign or be a power itself.
    case kPower: return print_at(left, kPrimary) + "^" + print_at(right, kUnary);
    case kProduct: return print_at(left, kProduct) + e.name + print_at(right, next);
    case kComparison: return fmt::format("{} {} {}", print_at(left, next), e.name, print_at(right, next));
    default: return fmt::format("{} {} {}", print_at(left, level), e.name, print_at(right, next));
  }
}

std::string print_bare(const Expression& e) {
  switch (e.kind) {
    case Expression::Kind::number:
      return fmt::format("{}", e.number);  // shortest text that reads back as the same number
    case Expression::Kind::name: return e.name;
    case Expression::Kind::text: return '"' + e.name + '"';
    case Expression::Kind::unary:
      return e.name == "not" ? "not " + print_at(*e.children[0], kNot) : "-" + print_at(*e.children[0], kUnary);
    case Expression::Kind::binary: return print_binary(e);
    case Expression::Kind::call: return print_call(e);
    case Expression::Kind::conditional:
      return fmt::format("if {} then {} else {}", print_at(*e.children[0], kConditional),
                         print_at(*e.children[1], kConditional), print_at(*e.children[2], kConditional));
  }
  return "";
}

std::string print_at(const Expression& e, Level least) {
  return level_of(e) < least ? "(" + print_bare(e) + ")" : print_bare(e);
}

}  // namespace

std::string print_expression(const Expression& expression) { return print_bare(expression); }

std::string print_formula(const Formula& formula) {
  std::string text;
  for (const Statement& statement : formula.statements) {
    if (!text.empty()) text += "; ";
    if (!statement.target.empty()) text += statement.target + " = ";
    text += print_expression(*statement.value);
  }
  return text;
}

bool same_expression(const Expression& a, const Expression& b) {
  if (a.kind != b.kind || a.name != b.name || a.number != b.number || a.children.size() != b.children.size() ||
      a.named.size() != b.named.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    if (!same_expression(*a.children[i], *b.children[i])) return false;
  }
  for (std::size_t i = 0; i < a.named.size(); ++i) {
    if (a.named[i].name != b.named[i].name || !same_expression(*a.named[i].value, *b.named[i].value)) return false;
  }
  return true;
}

bool same_formula(const Formula& a, const Formula& b) {
  if (a.statements.size() != b.statements.size()) return false;
  for (std::size_t i = 0; i < a.statements.size(); ++i) {
    if (a.statements[i].target != b.statements[i].target ||
        !same_expression(*a.statements[i].value, *b.statements[i].value))
      return false;
  }
  return true;
}

}  // namespace norma
