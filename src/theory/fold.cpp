#include "theory/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "norma/schemes/walk.h"

namespace norma {
namespace {

const Variables kNoVariables = {};

bool is_number(const ExpressionPtr& e) { return e->kind == Expression::Kind::number; }

ExpressionPtr number_at(double value, const Expression& e) {
  return std::make_shared<const Expression>(
      Expression{.kind = Expression::Kind::number, .span = e.span, .number = value});
}

ExpressionPtr rest_of(const Expression& e, std::vector<ExpressionPtr> children) {
  Expression rest = e;
  rest.children = std::move(children);
  return std::make_shared<const Expression>(std::move(rest));
}

const NamedExpression* find_constant(const std::vector<NamedExpression>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& constant) { return constant.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

FoldingAlgebra::FoldingAlgebra(const TheorySurroundings& surroundings, const std::string& text)
    : s_(surroundings), text_(text), numbers_(kNoVariables, text) {}

ExpressionPtr FoldingAlgebra::number(const Expression& e) const { return number_at(numbers_.number(e), e); }

ExpressionPtr FoldingAlgebra::text(const Expression& e) { return std::make_shared<const Expression>(e); }

ExpressionPtr FoldingAlgebra::name(const Expression& e) {
  if (e.name == "l" || e.name == "k" || e.name.starts_with('#')) return std::make_shared<const Expression>(e);
  // Nothing that the theory covers makes a stream anew.
  if (e.name == "since") return parse_expression("k - 1");
  if (of_stack_ && e.name == "N") return number_at(s_.encoder_depth, e);
  if (of_stack_ && e.name == "M") return number_at(s_.decoder_depth, e);
  if (const auto found = s_.numbers.find(e.name); found != s_.numbers.end()) return number_at(found->second, e);
  if (const NamedExpression* constant = find_constant(own_constants(), e.name)) return inside(*constant->value, true);
  if (const NamedExpression* constant = find_constant(s_.scheme.constants.common, e.name))
    return inside(*constant->value, false);
  for (const LearnedSpec& spec : s_.scheme.learned) {
    if (spec.name == e.name) return learned(spec, e);
  }
  for (const auto* stack : {&s_.scheme.constants.encoder, &s_.scheme.constants.decoder}) {
    if (find_constant(*stack, e.name) == nullptr) continue;
    throw NotPredictedError(
        fmt::format("scheme '{}': '{}' has a value only in an encoder-decoder", s_.scheme.name, e.name));
  }
  throw FormulaError(text_, e.span, fmt::format("'{}' is not known here", e.name));
}

ExpressionPtr FoldingAlgebra::learned(const LearnedSpec& spec, const Expression& e) {
  if (spec.extent == LearnedSpec::Extent::listed)
    throw NotPredictedError(
        fmt::format("scheme '{}': the theory has no rule for the learned matrix '{}'", s_.scheme.name, e.name));
  if (spec.from == LearnedSpec::From::condition)
    throw NotPredictedError(
        fmt::format("scheme '{}': the theory has no rule for '{}', which a condition makes", s_.scheme.name, e.name));
  if (spec.profile != nullptr) return std::make_shared<const Expression>(e);  // found on the way
  return inside(*spec.init, false);
}

ExpressionPtr FoldingAlgebra::unary(const Expression& e, ExpressionPtr a) const {
  return is_number(a) ? number_at(numbers_.unary(e, a->number), e) : rest_of(e, {std::move(a)});
}

ExpressionPtr FoldingAlgebra::binary(const Expression& e, ExpressionPtr a, ExpressionPtr b) const {
  if (is_number(a) && is_number(b)) return number_at(numbers_.binary(e, a->number, b->number), e);
  return rest_of(e, {std::move(a), std::move(b)});
}

std::optional<ExpressionPtr> FoldingAlgebra::answered(const Expression& e, const ExpressionPtr& a) const {
  if (!is_number(a)) return std::nullopt;
  const std::optional<double> known = numbers_.answered(e, a->number);
  return known ? std::optional(number_at(*known, e)) : std::nullopt;
}

ExpressionPtr FoldingAlgebra::call(const Expression& e, std::vector<ExpressionPtr> arguments) const {
  std::vector<double> numbers;
  for (const ExpressionPtr& argument : arguments) {
    if (!is_number(argument)) return rest_of(e, std::move(arguments));
    numbers.push_back(argument->number);
  }
  return number_at(numbers_.call(e, numbers), e);
}

std::optional<bool> FoldingAlgebra::decides(const Expression& /*e*/, const ExpressionPtr& condition) {
  return is_number(condition) ? std::optional(condition->number != 0) : std::nullopt;
}

ExpressionPtr FoldingAlgebra::either(const Expression& e, ExpressionPtr condition, ExpressionPtr yes,
                                     ExpressionPtr no) {
  return rest_of(e, {std::move(condition), std::move(yes), std::move(no)});
}

const std::vector<NamedExpression>& FoldingAlgebra::own_constants() const {
  static const std::vector<NamedExpression> none;
  if (s_.stack == StackKind::encoder) return s_.scheme.constants.encoder;
  return s_.stack == StackKind::decoder ? s_.scheme.constants.decoder : none;
}

ExpressionPtr FoldingAlgebra::inside(const Expression& e, bool of_stack) {
  const Constants& all = s_.scheme.constants;
  const std::size_t names = all.common.size() + all.encoder.size() + all.decoder.size() + s_.scheme.learned.size();
  if (depth_ > names) fail("scheme '{}': constants need one another", s_.scheme.name);
  ++depth_;
  const bool before = std::exchange(of_stack_, of_stack);
  ExpressionPtr value = walk(e, *this);
  of_stack_ = before;
  --depth_;
  return value;
}

Coefficient coefficient_of(const ExpressionPtr& folded) {
  if (is_number(folded)) return {.value = folded->number};
  return {.expression = folded};
}

TheorySurroundings theory_surroundings(const Scheme& scheme, const TheoryConfig& config, StackKind stack,
                                       bool measured_normed) {
  const double layers = static_cast<double>(config.layers);
  std::vector<const BranchKind*> branches = config.branches;
  if (branches.empty()) branches = usual_branches(stack == StackKind::decoder ? Memory::present : Memory::absent);
  // What the encoder of a model has is what its decoder has beside the memory.
  if (stack == StackKind::encoder)
    std::erase_if(branches, [](const BranchKind* kind) { return kind->reads == BranchKind::Reads::memory; });
  Variables numbers = {{"n", static_cast<double>(branches.size()) * layers},
                       {"N", layers},
                       {"M", layers},
                       {"d", static_cast<double>(config.width)},
                       {"heads", static_cast<double>(config.heads)},
                       {"t", 0.0},
                       {"T", 1.0}};
  return {.scheme = scheme,
          .config = config,
          .numbers = std::move(numbers),
          .measured_normed = measured_normed,
          .stack = stack,
          .branches = std::move(branches)};
}

bool TheorySurroundings::reads_memory() const {
  return std::ranges::any_of(branches, [](const BranchKind* kind) { return kind->reads == BranchKind::Reads::memory; });
}

Coefficient fold(const Expression& expression, const TheorySurroundings& surroundings, const std::string& text) {
  FoldingAlgebra folding(surroundings, text);
  return coefficient_of(walk(expression, folding));
}

double value_of(const Coefficient& coefficient, const Variables& place) {
  if (coefficient.expression == nullptr) return coefficient.value;
  if (coefficient.code == nullptr) coefficient.code = std::make_shared<NumberCode>(*coefficient.expression);
  const double value = coefficient.code->at(place);
  return std::isnan(value) ? evaluate(*coefficient.expression, place, "") : value;
}

}  // namespace norma
