#include "theory/wires.h"

#include <algorithm>

namespace norma {

TheorySum scaled(TheorySum sum, const Coefficient& factor, const char* op) {
  for (TheoryInstruction::Term& term : sum) term.coefficient = combined(op, term.coefficient, factor);
  // What is multiplied by zero leaves nothing behind: a branch that has not faded in yet is not there.
  std::erase_if(sum, [](const TheoryInstruction::Term& term) {
    return term.coefficient.expression == nullptr && term.coefficient.value == 0;
  });
  return sum;
}

TheorySum plus(TheorySum a, const TheorySum& b) {
  for (const TheoryInstruction::Term& term : b) {
    const auto same =
        std::find_if(a.begin(), a.end(), [&](const TheoryInstruction::Term& other) { return other.from == term.from; });
    if (same == a.end()) {
      a.push_back(term);
    } else {
      same->coefficient = combined("+", same->coefficient, term.coefficient);
    }
  }
  return a;
}

TheoryWires scaled(TheoryWires value, const Coefficient& factor, const char* op) {
  for (TheorySum& part : value.parts) part = scaled(std::move(part), factor, op);
  value.normed = false;
  return value;
}

TheoryWires plain(TheorySum sum) { return {.parts = {std::move(sum)}}; }

TheoryWires plain(int value) { return plain(TheorySum{{value, {1.0}}}); }

TheorySum row_of(const TheoryWeights& by, int row, const TheoryWires& value) {
  TheorySum sum;
  for (int j = 0; j < by.columns; ++j)
    sum = plus(std::move(sum), scaled(value.parts[static_cast<std::size_t>(j)], by.at(row, j)));
  return sum;
}

}  // namespace norma
