#include "theory/number.h"

#include <cmath>
#include <limits>
#include <map>

namespace norma {

NumberCode::NumberCode(const Expression& expression) { add(expression); }

NumberCode::Op NumberCode::operation(const Expression& e) {
  static const std::map<std::string, Op> binary = {
      {"+", Op::add},      {"-", Op::subtract},    {"*", Op::multiply}, {"/", Op::divide},         {"^", Op::power},
      {"<", Op::less},     {"<=", Op::less_equal}, {">", Op::greater},  {">=", Op::greater_equal}, {"==", Op::equal},
      {"!=", Op::unequal}, {"and", Op::both},      {"or", Op::either}};
  static const std::map<std::string, Op> calls = {
      {"sqrt", Op::square_root}, {"floor", Op::floor}, {"mod", Op::modulus}};
  const auto among = [&](const std::map<std::string, Op>& known) {
    const auto found = known.find(e.name);
    return found == known.end() ? Op::unknown : found->second;
  };
  switch (e.kind) {
    case Expression::Kind::number: return Op::constant;
    case Expression::Kind::name: return Op::variable;
    case Expression::Kind::unary: return e.name == "-" ? Op::negative : Op::inverse;
    case Expression::Kind::binary: return among(binary);
    case Expression::Kind::conditional: return Op::choice;
    case Expression::Kind::call: {
      const Op op = among(calls);
      const std::size_t arguments = op == Op::modulus ? 2 : 1;
      return e.children.size() == arguments && e.named.empty() ? op : Op::unknown;
    }
    default: return Op::unknown;
  }
}

int NumberCode::add(const Expression& e) {
  Node node{.op = operation(e)};
  const bool leaf = node.op == Op::unknown || node.op == Op::constant || node.op == Op::variable;
  if (!leaf) {
    node.a = add(*e.children[0]);
    if (e.children.size() > 1) node.b = add(*e.children[1]);
    if (e.children.size() > 2) node.c = add(*e.children[2]);
  }
  const int index = static_cast<int>(nodes_.size());
  if (node.op == Op::variable) variables_.emplace_back(index, e.name);
  if (node.op != Op::constant) computed_.push_back(index);
  values_.push_back(std::isfinite(e.number) ? e.number : std::numeric_limits<double>::quiet_NaN());
  nodes_.push_back(node);
  return index;
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

double NumberCode::raw(const Node& node) const {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const auto value = [&](int index) { return values_[static_cast<std::size_t>(index)]; };
  if (node.op == Op::variable) return node.where == nullptr ? kUnknown : *node.where;
  if (node.op == Op::unknown) return kUnknown;
  const double a = value(node.a);
  if (std::isnan(a)) return kUnknown;
  switch (node.op) {
    case Op::negative: return -a;
    case Op::inverse: return a == 0 ? 1 : 0;
    case Op::square_root: return std::sqrt(a);
    case Op::floor: return std::floor(a);
    case Op::choice: return value(a != 0 ? node.b : node.c);
    default: break;
  }
  if (node.op == Op::both && a == 0) return 0;
  if (node.op == Op::either && a != 0) return 1;
  const double b = value(node.b);
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
    case Op::modulus: return a - b * std::floor(a / b);
    default: return kUnknown;
  }
}

}  // namespace norma
