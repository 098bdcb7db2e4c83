// Weights of copies: learned vectors and matrices at their start, and what is computed from them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "theory/compiler.h"

namespace norma {
namespace {

constexpr double kSmallScatter = 0.1;  // of weights: what is left out changes second moments by its square

}  // namespace

TheoryWeights TheoryCompiler::settled(const Expression& e, TheoryWeights by) const {
  if (by.scatter > kSmallScatter)
    throw not_predicted(
        fmt::format("'{}', which differs between tokens by {:.2g} from the start", print_expression(e), by.scatter));
  by.scatter = 0;
  return by;
}

TheoryWeights TheoryCompiler::refused_if_none(const Expression& e, std::optional<TheoryWeights> by) const {
  if (!by) throw not_predicted(e);
  return *std::move(by);
}

TheoryWeights TheoryCompiler::of_weights(const Expression& e, const Function& function,
                                         const std::vector<Value>& arguments) {
  const Expression& first = *e.children[0];
  const TheoryWeights by = weights(first, arguments[0]);
  switch (function.moments.value) {
    case MomentRule::transpose: return transposed(by);
    case MomentRule::square: return matrix(e, by);
    case MomentRule::softmax: return refused_if_none(e, softmax_of(settled(first, by)));
    case MomentRule::sinkhorn: {
      const double times = value_of(number(*e.children[1], arguments[1]), place_);
      if (!(times >= 1 && times <= 1000)) throw not_predicted(e);
      return refused_if_none(e, sinkhorn_of(settled(first, by), static_cast<int>(times)));
    }
    default: break;
  }
  if (!function.number || function.arguments.size() != 1) throw not_predicted(e);
  return refused_if_none(e, mapped(settled(first, by), function.number.value));
}

TheoryWeights TheoryCompiler::matrix(const Expression& e, TheoryWeights by) const {
  const int side = static_cast<int>(std::lround(std::sqrt(by.columns)));
  if (by.count || by.rows != 1 || side * side != by.columns) throw not_predicted(e);
  by.rows = by.columns = side;
  return by;
}

TheoryWeights TheoryCompiler::listed(const TheoryLearned& learned) const {
  const LearnedSpec& spec = *learned.spec;
  const Expression& e = *learned.where;
  std::vector<int> sizes;
  for (const ExpressionPtr& size : spec.shape) sizes.push_back(size_of(*size, e));
  const int rows = sizes.size() > 1 ? sizes[0] : 1, columns = sizes.back();
  if (rows > kMostCopies || columns > kMostCopies * kMostCopies || spec.profile != nullptr)
    throw not_predicted(fmt::format("the learned matrix '{}'", e.name));
  TheorySurroundings here = s_;
  TheoryWeights result{.rows = rows, .columns = columns};
  for (int i = 1; i <= rows; ++i) {
    for (int j = 1; j <= columns; ++j) {
      here.numbers["i"] = sizes.size() > 1 ? i : j;  // of a vector only i
      here.numbers["j"] = sizes.size() > 1 ? j : 1;
      if (spec.init->kind == Expression::Kind::call && spec.init->name == "normal")
        throw not_predicted(fmt::format("the learned matrix '{}', which starts at random", e.name));
      result.elements.push_back(fold(*spec.init, here, print_expression(*spec.init)));
    }
  }
  return result;
}

int TheoryCompiler::size_of(const Expression& size, const Expression& e) const {
  const double value = value_of(fold(size, s_, print_expression(size)), place_);
  if (!(value >= 1 && value <= 1e9)) throw not_predicted(fmt::format("the learned matrix '{}'", e.name));
  return static_cast<int>(value);
}

TheoryWeights TheoryCompiler::read_from(const Expression& e, const std::vector<Value>& arguments) const {
  const TheoryLearned* learned = std::get_if<TheoryLearned>(&arguments[1]);
  const LearnedSpec* spec = learned == nullptr ? nullptr : learned->spec;
  const bool sized = spec != nullptr && (e.name == "dot" || spec->extent == LearnedSpec::Extent::listed);
  if (!sized || !is_wire(arguments[0])) throw not_predicted(e);
  const TheoryWires value = wires(*e.children[0], arguments[0]);
  if (!value.read_only && value.form == TheoryWires::Form::plain) throw not_predicted(e);
  const int copies = value.form == TheoryWires::Form::copies ? static_cast<int>(value.parts.size()) : 1;
  const int columns = e.name == "dot" ? 1 : size_of(*spec->shape.back(), *learned->where);
  if (columns > kMostCopies * kMostCopies || (value.form == TheoryWires::Form::growing && e.name != "dot"))
    throw not_predicted(e);
  TheoryWeights result = e.name == "dot" ? equal_weights(1, copies, {0.0}) : equal_weights(copies, columns, {0.0});
  result.count = value.count;
  result.scatter = random_part(e, *spec) * std::sqrt(value.length);
  if (result.scatter > 0 && !value.normed) throw not_predicted(e);
  return result;
}

double TheoryCompiler::random_part(const Expression& e, const LearnedSpec& spec) const {
  const Expression& init = *spec.init;
  const bool random = init.kind == Expression::Kind::call && init.name == "normal" && init.children.size() == 1;
  const Expression& number_of = random ? *init.children[0] : init;
  for (const std::string& used : names_in(number_of)) {
    if (used == "i" || used == "j") throw not_predicted(e);
  }
  const Coefficient start = fold(number_of, s_, print_expression(init));
  if (start.expression != nullptr || (!random && start.value != 0)) throw not_predicted(e);
  return std::abs(start.value);
}

}  // namespace norma
