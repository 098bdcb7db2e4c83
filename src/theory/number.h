// An expression of l, k and the like, flattened: ten thousand layers ask for it ten thousand times.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "norma/schemes/evaluate.h"

namespace norma {

class NumberCode {
 public:
  explicit NumberCode(const Expression& expression);

  // What evaluate() gives, or NaN wherever that might throw. The variables may change, their map must not.
  double at(const Variables& place);

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
    square_root,
    floor,
    modulus,
    unknown,
  };
  struct Node {  // operands stand before it
    Op op = Op::unknown;
    int a = 0, b = 0, c = 0;
    const double* where = nullptr;  // variable
  };

  int add(const Expression& e);
  static Op operation(const Expression& e);
  void bind(const Variables& place);
  double raw(const Node& node) const;

  std::vector<Node> nodes_;
  std::vector<double> values_;  // of the nodes
  std::vector<int> computed_;   // all but constants
  std::vector<std::pair<int, std::string>> variables_;
  const Variables* bound_to_ = nullptr;
};

}  // namespace norma
