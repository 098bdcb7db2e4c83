// What a formula's wires are while it is compiled: sums of values, scaled, and copies of such sums.
#pragma once

#include <optional>
#include <vector>

#include "theory/program.h"
#include "theory/weights.h"

namespace norma {

// A sum of scaled wires, each named by the value that made it.
using TheorySum = std::vector<TheoryInstruction::Term>;

// A wire: one sum; one for each copy; or, of a stack that grows, that of all its copies.
struct TheoryWires {
  enum class Form { plain, copies, growing };
  Form form = Form::plain;
  std::vector<TheorySum> parts = {};
  std::optional<Coefficient> count = {};  // growing: of copies
  // Only weights are made of it, so that it matters how many numbers it has and not what they are.
  bool read_only = false;
  double length = 0;    // read_only: of the last axis
  bool normed = false;  // read_only: numbers of rms 1
};

TheorySum scaled(TheorySum sum, const Coefficient& factor, const char* op = "*");
TheoryWires scaled(TheoryWires value, const Coefficient& factor, const char* op = "*");
TheorySum plus(TheorySum a, const TheorySum& b);

TheoryWires plain(TheorySum sum);
TheoryWires plain(int value);

// The copies of `value`, weighed by a row of a matrix.
TheorySum row_of(const TheoryWeights& by, int row, const TheoryWires& value);

}  // namespace norma
