// Second moments of the wires of a formula: small symmetric matrices, and how sums act on them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "schemes/theory_program.h"

namespace norma {

// Several such matrices that the same sums act on, side by side.
template <int Lanes>
class MomentMatrix {
 public:
  using Cell = std::array<double, Lanes>;

  const Cell& at(int i, int j) const { return cells_[index(i, j)]; }
  const Cell& at(int i) const { return at(i, i); }
  void set(int i, int j, const Cell& cell) { cells_[index(i, j)] = cells_[index(j, i)] = cell; }
  void set(int i, const Cell& cell) { cells_[index(i, i)] = cell; }

  // Register `to` becomes a sum of others, which may include itself.
  void assign_sum(int to, const std::vector<TheoryInstruction::Term>& terms, const double* factors, int count) {
    std::array<Cell, kMostRegisters> row;
    std::fill_n(row.begin(), count, Cell{});
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (factors[t] == 0) continue;
      for (int j = 0; j < count; ++j) add(row[static_cast<std::size_t>(j)], factors[t], at(terms[t].from, j));
    }
    Cell square = {};
    for (std::size_t t = 0; t < terms.size(); ++t)
      add(square, factors[t], row[static_cast<std::size_t>(terms[t].from)]);
    for (int j = 0; j < count; ++j) set(to, j, row[static_cast<std::size_t>(j)]);
    set(to, square);
  }

  // The adjoint of assign_sum: what was added up hands its gradient to each of its terms.
  void pull_back(int to, const std::vector<TheoryInstruction::Term>& terms, const double* factors, int count) {
    std::array<Cell, kMostRegisters> row;
    bool empty = at(to) == Cell{};
    for (int j = 0; j < count; ++j) {
      row[static_cast<std::size_t>(j)] = j == to ? Cell{} : at(to, j);
      empty = empty && row[static_cast<std::size_t>(j)] == Cell{};
    }
    if (empty) return;  // nobody read it
    const Cell square = at(to);
    isolate(to, {}, count);
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const int from = terms[t].from;
      if (factors[t] == 0) continue;
      for (int j = 0; j < count; ++j) {
        Cell cell = at(from, j);
        add(cell, (j == from ? 2 : 1) * factors[t], row[static_cast<std::size_t>(j)]);
        set(from, j, cell);
      }
    }
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (factors[t] == 0) continue;
      for (std::size_t u = 0; u < terms.size(); ++u)
        add(cells_[index(terms[t].from, terms[u].from)], factors[t] * factors[u], square);
    }
  }

  // Register `to` becomes something that is independent of all others.
  void isolate(int to, const Cell& square, int count) {
    for (int j = 0; j < count; ++j) set(to, j, {});
    set(to, square);
  }

 private:
  static void add(Cell& cell, double factor, const Cell& other) {
    for (int lane = 0; lane < Lanes; ++lane)
      cell[static_cast<std::size_t>(lane)] += factor * other[static_cast<std::size_t>(lane)];
  }
  static std::size_t index(int i, int j) { return static_cast<std::size_t>(i * kMostRegisters + j); }
  std::array<Cell, static_cast<std::size_t>(kMostRegisters)* kMostRegisters> cells_ = {};
};

// y = tanh(slope*x) for a Gaussian x.
struct SquashResponse {
  double mean_slope = 0;  // E y'
  Moments output;
  Moments slope;  // E y'^2, and for two tokens E y'(1) y'(2)
};
SquashResponse squash_response(double slope, double variance, double correlation);

}  // namespace norma
