// An expression of l, k and the like, flattened: ten thousand layers ask for it ten thousand times.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "norma/schemes/evaluate.h"
#include "norma/schemes/functions.h"

namespace norma {

// Also the algebra (walk.h) that makes it: a value is a node, and nothing is decided before a place is known.
class NumberCode {
 public:
  using Value = int;

  explicit NumberCode(const Expression& expression);

  // What evaluate() gives, or NaN wherever that might throw. The variables may change, their map must not.
  double at(const Variables& place);

  int number(const Expression& e);
  int text(const Expression& /*e*/) { return unknown(); }
  int name(const Expression& e);
  int unary(const Expression& e, int a);
  int binary(const Expression& e, int a, int b);
  static std::optional<int> answered(const Expression& /*e*/, int /*a*/) { return std::nullopt; }
  static void expects(const Expression& /*e*/) {}
  int call(const Expression& e, const std::vector<int>& arguments);
  static std::optional<bool> decides(const Expression& /*e*/, int /*condition*/) { return std::nullopt; }
  int either(const Expression& e, int condition, int yes, int no);

 private:
  enum class Op : std::uint8_t {
    constant,
    variable,
    negative,
    inverse,
    add,
    subtract,
    multiply,
    divide,
    power,
    less,
    less_equal,
    greater,
    greater_equal,
    equal,
    unequal,
    both,
    either,
    choice,
    function,
    unknown,
  };
  static constexpr std::size_t kMostArguments = 3;  // of a function

  struct Node {  // operands stand before it
    Op op = Op::unknown;
    std::array<int, kMostArguments> from = {};
    const double* where = nullptr;      // variable
    NumberFunction function = nullptr;  // with so many arguments
    std::size_t arguments = 0;
  };

  static Op operation(const std::string& binary);
  int add(const Node& node, double value = 0);
  int unknown() { return add({.op = Op::unknown}); }
  void bind(const Variables& place);
  double raw(const Node& node) const;
  double of_function(const Node& node) const;

  std::vector<Node> nodes_;
  std::vector<double> values_;  // of the nodes
  std::vector<int> computed_;   // all but constants
  std::vector<std::pair<int, std::string>> variables_;
  const Variables* bound_to_ = nullptr;
};

}  // namespace norma
