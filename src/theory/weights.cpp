#include "theory/weights.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace norma {
namespace {

ExpressionPtr tree_of(const Coefficient& c) {
  if (c.expression != nullptr) return c.expression;
  return std::make_shared<const Expression>(Expression{.kind = Expression::Kind::number, .number = c.value});
}

bool fixed_everywhere(const TheoryWeights& weights) {
  return std::all_of(weights.elements.begin(), weights.elements.end(),
                     [](const Coefficient& c) { return c.expression == nullptr; });
}

double size_of(const TheoryWeights& weights) {
  double largest = 0;
  for (const Coefficient& c : weights.elements) largest = std::max(largest, std::abs(c.value));
  return largest;
}

}  // namespace

Coefficient combined(const char* op, const Coefficient& a, const Coefficient& b) {
  if (a.expression == nullptr && b.expression == nullptr) {
    if (op[0] == '+') return {a.value + b.value};
    if (op[0] == '-') return {a.value - b.value};
    return {op[0] == '/' ? a.value / b.value : a.value * b.value};
  }
  if (op[0] == '*' && a.expression == nullptr && a.value == 1) return b;
  return {.expression = std::make_shared<const Expression>(
              Expression{.kind = Expression::Kind::binary, .name = op, .children = {tree_of(a), tree_of(b)}})};
}

TheoryWeights equal_weights(int rows, int columns, const Coefficient& each) {
  return {.rows = rows,
          .columns = columns,
          .elements = std::vector<Coefficient>(static_cast<std::size_t>(rows * columns), each)};
}

std::optional<TheoryWeights> combined(const char* op, const TheoryWeights& a, const TheoryWeights& b) {
  const bool one_a = a.elements.size() == 1 && !a.count, one_b = b.elements.size() == 1 && !b.count;
  const bool alike = a.rows == b.rows && a.columns == b.columns && a.count.has_value() == b.count.has_value();
  if (!alike && !one_a && !one_b) return std::nullopt;
  TheoryWeights result = one_a ? b : a;
  for (std::size_t i = 0; i < result.elements.size(); ++i)
    result.elements[i] = combined(op, a.elements[one_a ? 0 : i], b.elements[one_b ? 0 : i]);
  const bool sum = op[0] == '+' || op[0] == '-';
  if (a.scatter == 0 && b.scatter == 0) return result;
  if (op[0] == '/' && b.scatter != 0) return std::nullopt;
  if (!sum && (!fixed_everywhere(a) || !fixed_everywhere(b))) return std::nullopt;
  result.scatter = sum            ? std::hypot(a.scatter, b.scatter)
                   : op[0] == '/' ? a.scatter / std::abs(b.elements[0].value)
                                  : a.scatter * size_of(b) + b.scatter * size_of(a);
  return result;
}

TheoryWeights transposed(const TheoryWeights& weights) {
  TheoryWeights result = weights;
  std::swap(result.rows, result.columns);
  for (int i = 0; i < result.rows; ++i) {
    for (int j = 0; j < result.columns; ++j)
      result.elements[static_cast<std::size_t>(i * result.columns + j)] = weights.at(j, i);
  }
  return result;
}

std::optional<TheoryWeights> mapped(const TheoryWeights& weights, NumberFunction function) {
  if (!fixed_everywhere(weights)) return std::nullopt;
  TheoryWeights result = weights;
  for (Coefficient& c : result.elements) c.value = function({&c.value, 1});
  return result;
}

std::optional<TheoryWeights> softmax_of(const TheoryWeights& weights) {
  TheoryWeights result = weights;
  if (weights.count) {  // all alike
    result.elements = {combined("/", {1.0}, *weights.count)};
    return result;
  }
  if (!fixed_everywhere(weights)) return std::nullopt;
  for (int i = 0; i < weights.rows; ++i) {
    const auto first = result.elements.begin() + i * weights.columns, end = first + weights.columns;
    const double highest =
        std::max_element(first, end, [](const auto& a, const auto& b) { return a.value < b.value; })->value;
    double sum = 0;
    std::for_each(first, end, [&](Coefficient& c) { sum += c.value = std::exp(c.value - highest); });
    std::for_each(first, end, [&](Coefficient& c) { c.value /= sum; });
  }
  return result;
}

std::optional<TheoryWeights> sinkhorn_of(const TheoryWeights& weights, int times) {
  if (weights.rows != weights.columns) return std::nullopt;
  std::optional<TheoryWeights> result = mapped(weights, [](std::span<const double> x) { return std::exp(x[0]); });
  if (!result) return std::nullopt;
  const int side = weights.rows;
  const auto divide = [&](int first, int step) {
    double sum = 0;
    const auto at = [&](int i) -> double& {
      return result->elements[static_cast<std::size_t>(first + i * step)].value;
    };
    for (int i = 0; i < side; ++i) sum += at(i);
    for (int i = 0; i < side; ++i) at(i) /= sum;
  };
  for (int round = 0; round < times; ++round) {
    for (int column = 0; column < side; ++column) divide(column, side);
    for (int row = 0; row < side; ++row) divide(row * side, 1);
  }
  return result;
}

}  // namespace norma
