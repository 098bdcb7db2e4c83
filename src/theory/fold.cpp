// Fills in what is known about an expression, so that a place of the stack costs only what depends on l and k.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "theory/program.h"

namespace norma {
namespace {

bool is_number(const ExpressionPtr& e) { return e->kind == Expression::Kind::number; }

ExpressionPtr number(double value, Span span = {}) {
  return std::make_shared<const Expression>(
      Expression{.kind = Expression::Kind::number, .span = span, .number = value});
}

class Folder {
 public:
  Folder(const TheorySurroundings& surroundings, const std::string& text) : s_(surroundings), text_(text) {}

  // `of_stack`: whether the expression is a constant of one of two stacks, where N and M are the depths of both.
  ExpressionPtr run(const Expression& e, int depth = 0, bool of_stack = false) const {
    if (depth > kDeepestFormula) fail("scheme '{}': constants need one another", s_.scheme.name);
    if (e.kind == Expression::Kind::name) return name(e, depth, of_stack);
    if (e.kind == Expression::Kind::conditional) {
      const ExpressionPtr condition = run(*e.children[0], depth + 1, of_stack);
      if (is_number(condition))
        return run(condition->number != 0 ? *e.children[1] : *e.children[2], depth + 1, of_stack);
    }
    Expression folded = e;
    bool known = true;
    for (ExpressionPtr& child : folded.children) {
      child = run(*child, depth + 1, of_stack);
      known = known && is_number(child);
    }
    if (const auto* function = activation(e)) return of_learned(e, folded, function);
    if (known && e.kind != Expression::Kind::text) return number(evaluate(folded, {}, text_), e.span);
    return std::make_shared<const Expression>(std::move(folded));
  }

 private:
  using Function = double (*)(double);

  const std::vector<NamedExpression>& own_constants() const {
    static const std::vector<NamedExpression> none;
    if (s_.stack == StackKind::encoder) return s_.scheme.constants.encoder;
    return s_.stack == StackKind::decoder ? s_.scheme.constants.decoder : none;
  }

  ExpressionPtr name(const Expression& e, int depth, bool of_stack) const {
    if (e.name == "l" || e.name == "k" || e.name.starts_with('#')) return std::make_shared<const Expression>(e);
    if (of_stack && e.name == "N") return number(s_.encoder_depth, e.span);
    if (of_stack && e.name == "M") return number(s_.decoder_depth, e.span);
    if (const auto found = s_.numbers.find(e.name); found != s_.numbers.end()) return number(found->second, e.span);
    for (const NamedExpression& constant : own_constants()) {
      if (constant.name == e.name) return run(*constant.value, depth + 1, true);
    }
    for (const NamedExpression& constant : s_.scheme.constants.common) {
      if (constant.name == e.name) return run(*constant.value, depth + 1);
    }
    for (const LearnedSpec& learned : s_.scheme.learned) {
      if (learned.name != e.name) continue;
      if (learned.extent == LearnedSpec::Extent::listed)
        throw NotPredictedError(
            fmt::format("scheme '{}': the theory has no rule for the learned matrix '{}'", s_.scheme.name, e.name));
      if (learned.profile != nullptr) return std::make_shared<const Expression>(e);  // found on the way
      return run(*learned.init, depth + 1);
    }
    for (const auto* stack : {&s_.scheme.constants.encoder, &s_.scheme.constants.decoder}) {
      for (const NamedExpression& constant : *stack) {
        if (constant.name != e.name) continue;
        throw NotPredictedError(
            fmt::format("scheme '{}': '{}' has a value only in an encoder-decoder", s_.scheme.name, e.name));
      }
    }
    throw FormulaError(text_, e.span, fmt::format("'{}' is not known here", e.name));
  }

  static Function const* activation(const Expression& e) {
    static const std::map<std::string, Function> functions = {
        {"tanh", [](double x) { return std::tanh(x); }},
        {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
        {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
        {"sg", [](double x) { return x; }},
    };
    if (e.kind != Expression::Kind::call) return nullptr;
    const auto found = functions.find(e.name);
    return found == functions.end() ? nullptr : &found->second;
  }

  // tanh, sigmoid, silu of a learned value at its start.
  ExpressionPtr of_learned(const Expression& e, const Expression& folded, const Function* function) const {
    if (folded.children.size() != 1) throw FormulaError(text_, e.span, fmt::format("{} takes one argument", e.name));
    if (!is_number(folded.children[0]))
      throw NotPredictedError(
          fmt::format("scheme '{}': {} of a value that differs between layers", s_.scheme.name, e.name));
    return number((*function)(folded.children[0]->number), e.span);
  }

  const TheorySurroundings& s_;
  const std::string& text_;
};

}  // namespace

TheorySurroundings theory_surroundings(const Scheme& scheme, const TheoryConfig& config, StackKind stack,
                                       bool measured_normed) {
  const double layers = static_cast<double>(config.layers);
  const Place place{.stack = stack};
  Variables numbers = {{"n", static_cast<double>(place.sublayers_per_layer()) * layers},
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
          .stack = stack};
}

Coefficient fold(const Expression& expression, const TheorySurroundings& surroundings, const std::string& text) {
  const ExpressionPtr folded = Folder(surroundings, text).run(expression);
  if (is_number(folded)) return {.value = folded->number};
  return {.expression = folded};
}

double value_of(const Coefficient& coefficient, const Variables& place) {
  if (coefficient.expression == nullptr) return coefficient.value;
  if (coefficient.code == nullptr) coefficient.code = std::make_shared<NumberCode>(*coefficient.expression);
  const double value = coefficient.code->at(place);
  return std::isnan(value) ? evaluate(*coefficient.expression, place, "") : value;
}

}  // namespace norma
