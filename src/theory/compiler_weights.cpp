// Weights of copies: learned vectors and matrices at their start, and what is computed from them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "norma/schemes/trace.h"
#include "theory/compiler.h"

namespace norma {
namespace {

constexpr double kSmallScatter = 0.1;  // of weights: what is left out changes second moments by its square

using NumberFunction = double (*)(double);

NumberFunction number_function(const std::string& name) {
  static const std::map<std::string, NumberFunction> functions = {
      {"tanh", [](double x) { return std::tanh(x); }},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
      {"exp", [](double x) { return std::exp(x); }},
      {"abs", [](double x) { return std::abs(x); }},
  };
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

}  // namespace

TheoryWeights TheoryCompiler::settled(TheoryWeights by, const Expression& e) const {
  if (by.scatter > kSmallScatter)
    throw not_predicted(
        fmt::format("'{}', which differs between tokens by {:.2g} from the start", print_expression(e), by.scatter));
  by.scatter = 0;
  return by;
}

TheoryWeights TheoryCompiler::weights(const Expression& e) {
  const auto or_refused = [&](std::optional<TheoryWeights> result) {
    if (!result) throw not_predicted(e);
    return *std::move(result);
  };
  if (e.kind == Expression::Kind::conditional) return weights(chosen(e));
  if (!is_weights(e)) {
    if (is_wire(e)) throw not_predicted(e);
    return equal_weights(1, 1, number(e));
  }
  if (e.kind == Expression::Kind::name) {
    const auto found = weights_.find(e.name);
    return found != weights_.end() ? found->second : listed(*learned(e), e);
  }
  if (e.kind == Expression::Kind::unary)
    return or_refused(combined("*", equal_weights(1, 1, {-1.0}), weights(*e.children[0])));
  if (e.kind == Expression::Kind::binary && is_one_of(e.name, {"+", "-", "*", "/"}))
    return or_refused(combined(e.name.c_str(), weights(*e.children[0]), weights(*e.children[1])));
  if (e.kind != Expression::Kind::call || !e.named.empty() || e.children.empty()) throw not_predicted(e);
  const Expression& first = *e.children[0];
  if (is_one_of(e.name, {"dot", "matmul"}) && e.children.size() == 2) return read_from(e, first, *e.children[1]);
  if (e.name == "sinkhorn" && e.children.size() == 2) {
    const double times = value_of(number(*e.children[1]), place_);
    if (!(times >= 1 && times <= 1000)) throw not_predicted(e);
    return or_refused(sinkhorn_of(settled(weights(first), first), static_cast<int>(times)));
  }
  if (e.children.size() != 1) throw not_predicted(e);
  if (e.name == "transpose") return transposed(weights(first));
  if (e.name == "matrix") return matrix(e, weights(first));
  if (e.name == "softmax") return or_refused(softmax_of(settled(weights(first), first)));
  if (const NumberFunction function = number_function(e.name))
    return or_refused(mapped(settled(weights(first), first), function));
  throw not_predicted(e);
}

TheoryWeights TheoryCompiler::matrix(const Expression& e, TheoryWeights by) const {
  const int side = static_cast<int>(std::lround(std::sqrt(by.columns)));
  if (by.count || by.rows != 1 || side * side != by.columns) throw not_predicted(e);
  by.rows = by.columns = side;
  return by;
}

TheoryWeights TheoryCompiler::listed(const LearnedSpec& spec, const Expression& e) const {
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

TheoryWeights TheoryCompiler::read_from(const Expression& e, const Expression& stream, const Expression& by) {
  const LearnedSpec* spec = learned(by);
  const bool sized = spec != nullptr && (e.name == "dot" || spec->extent == LearnedSpec::Extent::listed);
  if (!sized || !is_wire(stream)) throw not_predicted(e);
  const TheoryWires value = wires(stream);
  if (!value.read_only && value.form == TheoryWires::Form::plain) throw not_predicted(e);
  const int copies = value.form == TheoryWires::Form::copies ? static_cast<int>(value.parts.size()) : 1;
  const int columns = e.name == "dot" ? 1 : size_of(*spec->shape.back(), by);
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
