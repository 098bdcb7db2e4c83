// A residual block as a line of math: the syntax tree of a formula, its parser and its printer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "norma/core/error.h"

namespace norma {

// Where in the text a piece of a formula came from; errors put a caret there.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct Expression;
using ExpressionPtr = std::shared_ptr<const Expression>;

// A named argument of a call: `attn(x, heads = 4)`.
struct NamedArgument {
  std::string name;
  ExpressionPtr value;
  Span span = {};  // of name and value
};

struct Expression {
  enum class Kind {
    number,       // 0.25
    name,         // x, alpha, l
    text,         // "rmsnorm"
    unary,        // -a, not a
    binary,       // a + b, a <= b, a and b
    call,         // norm(x), f(x), sqrt(l)
    conditional,  // if a then b else c
  };

  Kind kind = Kind::number;
  Span span = {};
  double number = 0;                         // number
  std::string name = {};                     // name, text, call: the function; unary and binary: the operator
  std::vector<ExpressionPtr> children = {};  // operands, positional arguments, or condition/then/else
  std::vector<NamedArgument> named = {};     // call
};

// `target = value`, or a bare value when target is empty.
struct Statement {
  std::string target;
  Span target_span = {};
  ExpressionPtr value;
};

// Statements separated by `;`. The last one may be a bare expression: the new value of the main stream x.
struct Formula {
  std::string text;  // as it was written
  std::vector<Statement> statements;
};

// A formula that does not parse. what() shows the text, a caret under the place, and what was expected there.
class FormulaError : public Error {
 public:
  FormulaError(std::string_view text, Span span, std::string_view message);
  Span span() const { return span_; }
  const std::string& message() const { return message_; }

 private:
  Span span_;
  std::string message_;
};

// Bounds on hostile input: longer or deeper formulas are refused with an error, never a crash.
constexpr std::size_t kLongestFormula = 64 * 1024;  // bytes
constexpr int kDeepestFormula = 200;                // nested expressions

Formula parse_formula(std::string_view text);           // one or more statements
ExpressionPtr parse_expression(std::string_view text);  // exactly one expression (constants, init values)

// The formula in canonical spelling, with no parentheses that precedence does not need. Parsing the result gives the
// same tree.
std::string print_formula(const Formula& formula);
std::string print_expression(const Expression& expression);

// Whether two trees are equal, wherever they were written.
bool same_expression(const Expression& a, const Expression& b);
bool same_formula(const Formula& a, const Formula& b);

}  // namespace norma
