#include "theory/compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "norma/schemes/walk.h"

namespace norma {

TheoryCompiler::TheoryCompiler(const Formula& formula, const BranchKind* branch, const TheorySurroundings& surroundings,
                               const Variables& place)
    : formula_(formula), branch_(branch), s_(surroundings), place_(place), folding_(surroundings, formula.text) {
  for (const TheoryStream& stream : s_.streams) {
    TheoryWires wires{.form = stream.grows    ? TheoryWires::Form::growing
                              : stream.copies ? TheoryWires::Form::copies
                                              : TheoryWires::Form::plain};
    for (int r = 0; r < stream.registers; ++r) wires.parts.push_back({{stream.first + r, {1.0}}});
    if (stream.grows) wires.count = named(count_name(stream.name));
    wires_[stream.name] = std::move(wires);
  }
  values_ = s_.stream_registers() + (s_.reads_memory() ? 1 : 0);
}

TheoryProgram TheoryCompiler::run() {
  for (const Statement& statement : formula_.statements) {
    const std::string target = statement.target.empty() ? "x" : statement.target;
    Value value = walk(*statement.value, *this);
    if (TheoryWires* wires = std::get_if<TheoryWires>(&value)) {
      for (TheorySum& part : wires->parts) {
        if (part.size() != 1) part = {{materialise(std::move(part)), {1.0}}};
      }
      wires_[target] = std::move(*wires);
      weights_.erase(target);
    } else if (is_weights(value)) {
      weights_[target] = weights(*statement.value, value);
      wires_.erase(target);
    } else {
      throw not_predicted(fmt::format("a number that is named '{}' in a formula", target));
    }
  }
  std::vector<int> ends;
  std::vector<std::pair<std::string, Coefficient>> counts;
  for (const TheoryStream& stream : s_.streams) {
    const auto found = wires_.find(stream.name);
    if (found == wires_.end() || !keeps_form(found->second, stream))
      throw not_predicted(fmt::format("a stream '{}' whose number of copies changes", stream.name));
    for (const TheorySum& part : found->second.parts) ends.push_back(materialise(part));
    if (stream.grows && found->second.count->expression->name != count_name(stream.name))
      counts.emplace_back(count_name(stream.name), *found->second.count);
  }
  // A branch would be added to what has no negative part, and the next relu would not read a Gaussian.
  const auto calls = [](const TheoryInstruction& one) { return one.op == TheoryInstruction::Op::branch; };
  const auto ends_it = [&](const TheoryInstruction& one) {
    return one.op == TheoryInstruction::Op::relu && one.to == ends.front();
  };
  if (std::ranges::any_of(instructions_, calls) && std::ranges::any_of(instructions_, ends_it))
    throw not_predicted("a stream that is rectified in every layer");
  TheoryProgram program = registers(std::move(ends), {}).take();
  program.counts = std::move(counts);
  return program;
}

TheoryProfile TheoryCompiler::profile(const LearnedSpec& learned) {
  visit(*learned.profile, [&](const Expression& e) {
    if (e.kind == Expression::Kind::conditional)
      throw not_predicted(fmt::format("a condition in the profile of '{}'", learned.name));
  });
  TheoryProfile result;
  profile_ = &result;
  const Value next = walk(*learned.profile, *this);
  if (!is_number(next)) throw reads_otherwise(*learned.profile);
  result.next = number(*learned.profile, next);
  std::vector<int> ends;
  for (int r = 0; r < s_.stream_registers(); ++r) ends.push_back(r);
  TheoryRegisters given = registers(std::move(ends), kept_);
  for (std::size_t i = 0; i < kept_.size(); ++i) result.variances[i].second = given.of(kept_[i]);
  result.program = given.take();
  return result;
}

TheoryRegisters TheoryCompiler::registers(std::vector<int> ends, std::vector<int> kept) {
  std::vector<bool> alone;
  for (const TheoryStream& stream : s_.streams)
    alone.insert(alone.end(), static_cast<std::size_t>(stream.registers), stream.alone);
  return {s_.scheme.name,
          {.instructions = std::move(instructions_),
           .count = values_,
           .ends = std::move(ends),
           .kept = std::move(kept),
           .memory = s_.reads_memory(),
           .alone = std::move(alone)}};
}

Coefficient TheoryCompiler::named(const std::string& name) {
  return {.expression = std::make_shared<const Expression>(Expression{.kind = Expression::Kind::name, .name = name})};
}

bool TheoryCompiler::keeps_form(const TheoryWires& value, const TheoryStream& stream) {
  const bool growing = value.form == TheoryWires::Form::growing, copies = value.form == TheoryWires::Form::copies;
  return !value.read_only && growing == stream.grows && copies == (stream.copies && !stream.grows) &&
         static_cast<int>(value.parts.size()) == stream.registers;
}

NotPredictedError TheoryCompiler::not_predicted(const std::string& what) const {
  return NotPredictedError(fmt::format("scheme '{}': the theory has no rule for {}", s_.scheme.name, what));
}

NotPredictedError TheoryCompiler::not_predicted(const Expression& e) const {
  return not_predicted(fmt::format("'{}'", print_expression(e)));
}

NotPredictedError TheoryCompiler::reads_otherwise(const Expression& e) const {
  for (const std::string& name : names_in(e)) {
    if (wires_.contains(name))
      return not_predicted(fmt::format("a profile that reads '{}' otherwise than by var", name));
  }
  return not_predicted(e);
}

TheoryCompiler::Value TheoryCompiler::name(const Expression& e) {
  if (const auto found = wires_.find(e.name); found != wires_.end()) return found->second;
  if (const auto found = weights_.find(e.name); found != weights_.end()) return found->second;
  const auto learned = std::find_if(s_.scheme.learned.begin(), s_.scheme.learned.end(),
                                    [&](const LearnedSpec& spec) { return spec.name == e.name; });
  if (learned != s_.scheme.learned.end() && learned->from == LearnedSpec::From::condition)
    throw not_predicted(fmt::format("'{}', which a condition makes", e.name));
  if (learned != s_.scheme.learned.end()) return TheoryLearned{.spec = &*learned, .where = &e};
  return folding_.name(e);
}

TheoryCompiler::Value TheoryCompiler::unary(const Expression& e, const Value& a) {
  if (is_number(a)) return folding_.unary(e, folded(*e.children[0], a));
  if (e.name != "-") throw not_predicted(e);
  if (is_wire(a)) return scaled(wires(*e.children[0], a), {-1.0});
  return refused_if_none(e, combined("*", equal_weights(1, 1, {-1.0}), weights(*e.children[0], a)));
}

TheoryCompiler::Value TheoryCompiler::binary(const Expression& e, const Value& a, const Value& b) {
  if (is_wire(a) || is_wire(b)) return wire_binary(e, a, b);
  const Expression &left = *e.children[0], &right = *e.children[1];
  if (is_number(a) && is_number(b)) return folding_.binary(e, folded(left, a), folded(right, b));
  if (e.name != "+" && e.name != "-" && e.name != "*" && e.name != "/") throw not_predicted(e);
  return refused_if_none(e, combined(e.name.c_str(), weights(left, a), weights(right, b)));
}

std::optional<TheoryCompiler::Value> TheoryCompiler::answered(const Expression& e, const Value& a) {
  if (!is_number(a)) throw not_predicted(e);
  if (std::optional<ExpressionPtr> known = folding_.answered(e, folded(*e.children[0], a))) return *std::move(known);
  return std::nullopt;
}

std::optional<bool> TheoryCompiler::decides(const Expression& e, const Value& condition) {
  return value_of(number(*e.children[0], condition), place_) != 0;
}

TheoryCompiler::Value TheoryCompiler::either(const Expression& e, const Value&, const Value&, const Value&) const {
  throw InternalError(fmt::format("a wiring was not decided: {}", print_expression(e)));
}

bool TheoryCompiler::is_weights(const Value& value) {
  const TheoryLearned* learned = std::get_if<TheoryLearned>(&value);
  return std::holds_alternative<TheoryWeights>(value) ||
         (learned != nullptr && learned->spec->extent == LearnedSpec::Extent::listed);
}

ExpressionPtr TheoryCompiler::folded(const Expression& e, const Value& value) {
  if (const ExpressionPtr* known = std::get_if<ExpressionPtr>(&value)) return *known;
  if (!is_number(value)) throw not_predicted(e);
  return folding_.name(*std::get<TheoryLearned>(value).where);
}

TheoryWires TheoryCompiler::wires(const Expression& e, const Value& value) const {
  if (const TheoryWires* known = std::get_if<TheoryWires>(&value)) return *known;
  if (e.kind == Expression::Kind::name)
    throw FormulaError(formula_.text, e.span, "this is a number; expected a wire such as x");
  throw not_predicted(e);
}

TheoryWeights TheoryCompiler::weights(const Expression& e, const Value& value) {
  if (const TheoryWeights* known = std::get_if<TheoryWeights>(&value)) return *known;
  if (is_wire(value)) throw not_predicted(e);
  if (is_weights(value)) return listed(std::get<TheoryLearned>(value));
  return equal_weights(1, 1, number(e, value));
}

TheorySum TheoryCompiler::linear(const Expression& e, const Value& value) const {
  TheoryWires known = wires(e, value);
  if (known.form != TheoryWires::Form::plain || known.read_only) throw not_predicted(e);
  return std::move(known.parts[0]);
}

TheoryWires TheoryCompiler::wire_binary(const Expression& e, const Value& a, const Value& b) {
  const Expression &left = *e.children[0], &right = *e.children[1];
  if (e.name == "*" && !is_wire(a)) return scaled(wires(right, b), number(left, a));
  if (e.name == "*" && !is_wire(b)) return scaled(wires(left, a), number(right, b));
  if (e.name == "/" && !is_wire(b)) {
    const Coefficient divisor = number(right, b);
    if (divisor.expression == nullptr && divisor.value == 0)
      throw FormulaError(formula_.text, right.span, "this divisor is zero");
    return scaled(wires(left, a), divisor, "/");
  }
  if ((e.name != "+" && e.name != "-") || !is_wire(a) || !is_wire(b)) throw not_predicted(e);
  TheoryWires sum = wires(left, a);
  const TheoryWires other = e.name == "-" ? scaled(wires(right, b), {-1.0}) : wires(right, b);
  if (sum.form != other.form || sum.form == TheoryWires::Form::growing || sum.parts.size() != other.parts.size() ||
      sum.read_only || other.read_only)
    throw not_predicted(e);
  for (std::size_t i = 0; i < sum.parts.size(); ++i) sum.parts[i] = plus(std::move(sum.parts[i]), other.parts[i]);
  return sum;
}

int TheoryCompiler::materialise(TheorySum sum) {
  if (sum.size() == 1 && sum[0].coefficient.expression == nullptr && sum[0].coefficient.value == 1) return sum[0].from;
  return emit({.op = TheoryInstruction::Op::combine, .terms = std::move(sum)});
}

int TheoryCompiler::emit(TheoryInstruction instruction) {
  instruction.to = values_++;
  instructions_.push_back(std::move(instruction));
  return values_ - 1;
}

}  // namespace norma
