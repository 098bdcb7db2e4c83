// The one walk over the tree of an expression: operands before operators, conditions before what they choose, `and` and
// `or` no further than needed. What the parts mean is an algebra; docs/language.md lists them.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "norma/schemes/formula.h"

namespace norma {

// Everything in a tree, parents before children, arguments as they are written.
template <typename Action>
void visit(const Expression& e, const Action& action) {
  action(e);
  for (const ExpressionPtr& child : e.children) visit(*child, action);
  for (const NamedArgument& argument : e.named) visit(*argument.value, action);
}

template <typename Action>
void visit(const Formula& formula, const Action& action) {
  for (const Statement& statement : formula.statements) visit(*statement.value, action);
}

// The value of an expression. An Algebra has a type Value and
//   Value number(e), text(e), name(e)       leaves
//   Value unary(e, a), binary(e, a, b)      operators, by e.name
//   std::optional<Value> answered(e, a)     of `and` and `or`, where the left side tells
//   void expects(e)                         throws for a call that means nothing, before its arguments are looked at
//   Value call(e, arguments)                positional ones; named ones are the algebra's own affair
//   std::optional<bool> decides(e, a)       the condition of e; nothing where it is not known yet, and then
//   Value either(e, condition, yes, no)
// and, where it wants to, void operand(e, Value&): called for each operand and argument of e before the next is walked.
template <typename Algebra>
typename Algebra::Value walk(const Expression& e, Algebra& algebra) {
  using Meaning = typename Algebra::Value;
  const auto child = [&](std::size_t i) {
    Meaning value = walk(*e.children[i], algebra);
    if constexpr (requires { algebra.operand(e, value); }) {
      if (e.kind != Expression::Kind::conditional) algebra.operand(e, value);
    }
    return value;
  };
  switch (e.kind) {
    case Expression::Kind::number: return algebra.number(e);
    case Expression::Kind::text: return algebra.text(e);
    case Expression::Kind::name: return algebra.name(e);
    case Expression::Kind::unary: return algebra.unary(e, child(0));
    case Expression::Kind::binary: {
      Meaning left = child(0);
      if (e.name == "and" || e.name == "or") {
        if (std::optional<Meaning> known = algebra.answered(e, left)) return *std::move(known);
      }
      Meaning right = child(1);
      return algebra.binary(e, std::move(left), std::move(right));
    }
    case Expression::Kind::call: {
      algebra.expects(e);
      std::vector<Meaning> arguments;
      arguments.reserve(e.children.size());
      for (std::size_t i = 0; i < e.children.size(); ++i) arguments.push_back(child(i));
      return algebra.call(e, std::move(arguments));
    }
    case Expression::Kind::conditional: break;
  }
  Meaning condition = child(0);
  if (const std::optional<bool> yes = algebra.decides(e, condition)) return child(*yes ? 1 : 2);
  Meaning yes = child(1), no = child(2);
  return algebra.either(e, std::move(condition), std::move(yes), std::move(no));
}

}  // namespace norma
