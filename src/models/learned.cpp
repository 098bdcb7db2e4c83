#include "models/learned.h"

#include <algorithm>
#include <cmath>

#include "norma/core/error.h"
#include "norma/models/stack.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

// Bounds on hostile input.
constexpr double kMostElements = 1e9, kMostListed = 1e6;

double number(const ExpressionPtr& expression, const Variables& numbers) {
  return evaluate(*expression, numbers, print_expression(*expression));
}

Shape shape_of(const LearnedSpec& learned, const Variables& numbers, const std::string& scheme) {
  if (learned.extent == LearnedSpec::Extent::one) return {1};
  if (learned.extent == LearnedSpec::Extent::width) return {static_cast<std::int64_t>(numbers.at("d"))};
  std::vector<std::int64_t> sizes;
  for (const ExpressionPtr& size : learned.shape) {
    const double value = number(size, numbers);
    if (value < 1 || value > kMostElements || value != std::floor(value)) {
      fail("scheme '{}': a size of learned.{} is {}; expected a whole number from 1 to {}", scheme, learned.name, value,
           kMostElements);
    }
    sizes.push_back(static_cast<std::int64_t>(value));
  }
  const double elements = static_cast<double>(sizes[0]) * static_cast<double>(sizes.size() > 1 ? sizes[1] : 1);
  if (elements > kMostElements)
    fail("scheme '{}': learned.{} would have {} elements; at most {} are made", scheme, learned.name, elements,
         kMostElements);
  return Shape(sizes);
}

// Element by element: i and j are row and column, from 1; of a vector only i.
Init listed(const LearnedSpec& learned, Variables numbers, const Shape& shape) {
  std::vector<double> values;
  const std::int64_t columns = shape.rank() == 1 ? 1 : shape.channels();
  for (std::int64_t at = 0; at < shape.elements(); ++at) {
    numbers["i"] = static_cast<double>(at / columns + 1);
    numbers["j"] = static_cast<double>(at % columns + 1);
    values.push_back(number(learned.init, numbers));
  }
  return Init::listed(std::move(values));
}

struct LearnedStart {
  Shape shape;
  ParameterSpec spec;
  double factor = 1;  // between what is stored and what a formula sees
};

LearnedStart start_of(const LearnedSpec& learned, const Variables& numbers, const std::string& scheme) {
  LearnedStart start{
      .shape = shape_of(learned, numbers, scheme),
      .spec = {.name = learned.name, .decay = learned.decay.value_or(true) ? 1.0 : 0.0, .role = "learned"}};
  start.spec.decays_as_vector = !learned.decay && learned.shape.size() < 2;
  if (learned.lr != nullptr) start.spec.lr = number(learned.lr, numbers);
  const Expression& init = *learned.init;
  const std::vector<std::string> names = names_in(init);
  const bool by_element =
      std::any_of(names.begin(), names.end(), [](const auto& name) { return name == "i" || name == "j"; });
  const bool random = init.kind == Expression::Kind::call && init.name == "normal" && init.children.size() == 1;
  if (learned.stored != nullptr) {
    if (by_element || random)
      fail("scheme '{}': learned.{} is stored at one number, so init must be one", scheme, learned.name);
    const double value = number(learned.init, numbers), stored = number(learned.stored, numbers);
    if (value == 0 || stored == 0)
      fail("scheme '{}': learned.{} and what is stored must not be 0", scheme, learned.name);
    start.spec.init = Init::constant(stored);
    start.factor = value / stored;
  } else if (random) {
    start.spec.init = Init::normal(number(init.children[0], numbers));
  } else if (by_element) {
    if (static_cast<double>(start.shape.elements()) > kMostListed)
      fail("scheme '{}': learned.{} has {} elements, too many to start each by itself", scheme, learned.name,
           start.shape.elements());
    start.spec.init = listed(learned, numbers, start.shape);
  } else {
    start.spec.init = Init::constant(number(learned.init, numbers));
  }
  return start;
}

// condition W + b, in a scope of its name.
Wire made_of_condition(Parameters& parameters, const LearnedSpec& learned, Wire condition, const LearnedPlace& place) {
  if (!condition)
    throw NotBuiltError(fmt::format(
        "scheme '{}' makes '{}' of a condition, such as a timestep or a class, which models of this family do not have",
        place.scheme, learned.name));
  const LearnedStart start = start_of(learned, place.numbers, place.scheme);
  const auto scope = parameters.graph().scope(learned.name);
  const std::int64_t in = condition.shape().channels(), out = start.shape[0];
  const double xavier = std::sqrt(2.0 / static_cast<double>(in + out));
  const InitRules& init = place.rules.init;
  ParameterSpec weight{
      .name = "weight",
      .init = Init::normal(init.deviation_of("condition").value_or(xavier) * init.gain_of("condition")),
      .role = "condition"};
  place.rules.optimiser.apply("condition", weight);
  ParameterSpec bias{.name = "bias", .init = start.spec.init, .role = "bias"};
  place.rules.optimiser.apply("bias", bias);
  const Wire made = linear(condition, parameters.share({in, out}, weight), parameters.share({out}, bias));
  return reshape(made, {made.shape()[0], 1, out});
}

}  // namespace

void add_names(const Expression& expression, const Variables& numbers, std::set<std::string>& names) {
  if (expression.kind == Expression::Kind::name) names.insert(expression.name);
  if (expression.kind == Expression::Kind::conditional) {
    const Expression& condition = *expression.children[0];
    try {
      const bool yes = evaluate(condition, numbers, print_expression(condition)) != 0;
      return add_names(*expression.children[yes ? 1 : 2], numbers, names);
    } catch (const Error&) {  // is refused when the formula is traced, with a caret
    }
  }
  for (const ExpressionPtr& child : expression.children) add_names(*child, numbers, names);
}

void add_names(const Formula& formula, const Variables& numbers, std::set<std::string>& names) {
  for (const Statement& statement : formula.statements) add_names(*statement.value, numbers, names);
}

Wire learned_value(Parameters& parameters, const LearnedSpec& learned, Wire condition, const LearnedPlace& place) {
  if (learned.from == LearnedSpec::From::condition) return made_of_condition(parameters, learned, condition, place);
  LearnedStart start = start_of(learned, place.numbers, place.scheme);
  place.rules.optimiser.apply("learned", start.spec);
  const Wire wire = parameters.share(start.shape, std::move(start.spec));
  return start.factor == 1 ? wire : wire * start.factor;
}

}  // namespace norma
