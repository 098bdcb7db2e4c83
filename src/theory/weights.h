// Small vectors and matrices of numbers that weigh and mix the copies of a stream, as they are before the first step.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "norma/schemes/functions.h"
#include "theory/program.h"

namespace norma {

struct TheoryWeights {
  int rows = 1, columns = 1;  // a vector is one row
  std::vector<Coefficient> elements = {};
  // One for each copy of a stack that grows: `elements` holds one number for all of them, and this is how many.
  std::optional<Coefficient> count = {};
  // Deviation of what the stream itself adds to each number through random weights; it is left out.
  double scatter = 0;

  const Coefficient& at(int row, int column) const {
    return elements[static_cast<std::size_t>(row * columns + column)];
  }
};

// a op b for + - * /.
Coefficient combined(const char* op, const Coefficient& a, const Coefficient& b);

TheoryWeights equal_weights(int rows, int columns, const Coefficient& each);
// Element by element; one number counts for all. Nothing where the shapes differ.
std::optional<TheoryWeights> combined(const char* op, const TheoryWeights& a, const TheoryWeights& b);
TheoryWeights transposed(const TheoryWeights& weights);

// These need numbers that are the same at every layer, and give nothing for others.
std::optional<TheoryWeights> mapped(const TheoryWeights& weights, NumberFunction function);  // of one number
std::optional<TheoryWeights> softmax_of(const TheoryWeights& weights);                       // along rows
std::optional<TheoryWeights> sinkhorn_of(const TheoryWeights& weights, int times);

}  // namespace norma
