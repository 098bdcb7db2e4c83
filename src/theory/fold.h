// Fills in what is known about an expression, so that a place of the stack costs only what depends on l and k.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "norma/schemes/evaluate.h"
#include "theory/program.h"

namespace norma {

// The algebra of what is left of an expression (walk.h): a number, or a tree of l, k and what is found on the way.
class FoldingAlgebra {
 public:
  using Value = ExpressionPtr;

  FoldingAlgebra(const TheorySurroundings& surroundings, const std::string& text);

  ExpressionPtr number(const Expression& e) const;
  static ExpressionPtr text(const Expression& e);
  ExpressionPtr name(const Expression& e);
  ExpressionPtr unary(const Expression& e, ExpressionPtr a) const;
  ExpressionPtr binary(const Expression& e, ExpressionPtr a, ExpressionPtr b) const;
  std::optional<ExpressionPtr> answered(const Expression& e, const ExpressionPtr& a) const;
  void expects(const Expression& e) const { numbers_.expects(e); }
  ExpressionPtr call(const Expression& e, std::vector<ExpressionPtr> arguments) const;
  static std::optional<bool> decides(const Expression& e, const ExpressionPtr& condition);
  static ExpressionPtr either(const Expression& e, ExpressionPtr condition, ExpressionPtr yes, ExpressionPtr no);

 private:
  const std::vector<NamedExpression>& own_constants() const;
  ExpressionPtr learned(const LearnedSpec& spec, const Expression& e);
  // What a name stands for. `of_stack`: a constant of one of two stacks, where N and M are the depths of both.
  ExpressionPtr inside(const Expression& e, bool of_stack);

  const TheorySurroundings& s_;
  const std::string& text_;
  NumberAlgebra numbers_;
  std::size_t depth_ = 0;  // of names within names
  bool of_stack_ = false;
};

Coefficient coefficient_of(const ExpressionPtr& folded);

}  // namespace norma
