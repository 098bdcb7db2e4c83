#include "theory/number.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "norma/schemes/walk.h"

namespace norma {

NumberCode::NumberCode(const Expression& expression) { walk(expression, *this); }

NumberCode::Op NumberCode::operation(const std::string& binary) {
  static const std::map<std::string, Op> all = {
      {"+", Op::add},      {"-", Op::subtract},    {"*", Op::multiply}, {"/", Op::divide},         {"^", Op::power},
      {"<", Op::less},     {"<=", Op::less_equal}, {">", Op::greater},  {">=", Op::greater_equal}, {"==", Op::equal},
      {"!=", Op::unequal}, {"and", Op::both},      {"or", Op::either}};
  return all.at(binary);
}

int NumberCode::add(const Node& node, double value) {
  const int index = static_cast<int>(nodes_.size());
  if (node.op != Op::constant) computed_.push_back(index);
  values_.push_back(std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN());
  nodes_.push_back(node);
  return index;
}

int NumberCode::number(const Expression& e) { return add({.op = Op::constant}, e.number); }

int NumberCode::name(const Expression& e) {
  const int index = add({.op = Op::variable});
  variables_.emplace_back(index, e.name);
  return index;
}

int NumberCode::unary(const Expression& e, int a) {
  return add({.op = e.name == "-" ? Op::negative : Op::inverse, .from = {a}});
}

int NumberCode::binary(const Expression& e, int a, int b) { return add({.op = operation(e.name), .from = {a, b}}); }

int NumberCode::either(const Expression& /*e*/, int condition, int yes, int no) {
  return add({.op = Op::choice, .from = {condition, yes, no}});
}

int NumberCode::call(const Expression& e, const std::vector<int>& arguments) {
  const Function* function = find_function(e.name);
  const bool known = function != nullptr && function->number && e.named.empty() &&
                     arguments.size() == function->arguments.size() && arguments.size() <= kMostArguments;
  if (!known) return unknown();
  Node node{.op = Op::function, .function = function->number.value, .arguments = arguments.size()};
  std::copy(arguments.begin(), arguments.end(), node.from.begin());
  return add(node);
}

void NumberCode::bind(const Variables& place) {
  bound_to_ = &place;
  for (const auto& [index, name] : variables_) {
    const auto found = place.find(name);
    nodes_[static_cast<std::size_t>(index)].where = found == place.end() ? nullptr : &found->second;
    if (found == place.end()) bound_to_ = nullptr;  // it may come
  }
}

double NumberCode::at(const Variables& place) {
  if (bound_to_ != &place) bind(place);
  for (const int index : computed_) {
    const double value = raw(nodes_[static_cast<std::size_t>(index)]);
    values_[static_cast<std::size_t>(index)] = std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
  }
  return values_.back();
}

double NumberCode::of_function(const Node& node) const {
  std::array<double, kMostArguments> arguments = {};
  for (std::size_t i = 0; i < node.arguments; ++i) {
    arguments[i] = values_[static_cast<std::size_t>(node.from[i])];
    if (std::isnan(arguments[i])) return std::numeric_limits<double>::quiet_NaN();
  }
  return node.function(std::span(arguments).first(node.arguments));
}

double NumberCode::raw(const Node& node) const {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const auto value = [&](int index) { return values_[static_cast<std::size_t>(index)]; };
  if (node.op == Op::variable) return node.where == nullptr ? kUnknown : *node.where;
  if (node.op == Op::unknown) return kUnknown;
  const double a = value(node.from[0]);
  if (std::isnan(a)) return kUnknown;
  switch (node.op) {
    case Op::negative: return -a;
    case Op::inverse: return a == 0 ? 1 : 0;
    case Op::function: return of_function(node);
    case Op::choice: return value(node.from[a != 0 ? 1 : 2]);
    default: break;
  }
  if (node.op == Op::both && a == 0) return 0;
  if (node.op == Op::either && a != 0) return 1;
  const double b = value(node.from[1]);
  if (std::isnan(b)) return kUnknown;
  switch (node.op) {
    case Op::add: return a + b;
    case Op::subtract: return a - b;
    case Op::multiply: return a * b;
    case Op::divide: return a / b;
    case Op::power: return std::pow(a, b);
    case Op::less: return a < b ? 1 : 0;
    case Op::less_equal: return a <= b ? 1 : 0;
    case Op::greater: return a > b ? 1 : 0;
    case Op::greater_equal: return a >= b ? 1 : 0;
    case Op::equal: return a == b ? 1 : 0;
    case Op::unequal: return a != b ? 1 : 0;
    case Op::both:
    case Op::either: return b != 0 ? 1 : 0;
    default: return kUnknown;
  }
}

}  // namespace norma
