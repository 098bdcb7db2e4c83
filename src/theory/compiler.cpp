#include "theory/compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "norma/schemes/trace.h"

namespace norma {

TheoryCompiler::TheoryCompiler(const Formula& formula, const std::string& branch,
                               const TheorySurroundings& surroundings, const Variables& place)
    : formula_(formula), branch_(branch), s_(surroundings), place_(place) {
  for (const TheoryStream& stream : s_.streams) {
    TheoryWires wires{.form = stream.grows    ? TheoryWires::Form::growing
                              : stream.copies ? TheoryWires::Form::copies
                                              : TheoryWires::Form::plain};
    for (int r = 0; r < stream.registers; ++r) wires.parts.push_back({{stream.first + r, {1.0}}});
    if (stream.grows) wires.count = named(count_name(stream.name));
    wires_[stream.name] = std::move(wires);
  }
  values_ = s_.stream_registers() + (s_.stack == StackKind::decoder ? 1 : 0);
}

TheoryProgram TheoryCompiler::run() {
  for (const Statement& statement : formula_.statements) {
    const std::string target = statement.target.empty() ? "x" : statement.target;
    if (is_wire(*statement.value)) {
      TheoryWires value = wires(*statement.value);
      for (TheorySum& part : value.parts) {
        if (part.size() != 1) part = {{materialise(std::move(part)), {1.0}}};
      }
      wires_[target] = std::move(value);
      weights_.erase(target);
    } else if (is_weights(*statement.value)) {
      weights_[target] = weights(*statement.value);
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
  TheoryProgram program = registers(std::move(ends), {}).take();
  program.counts = std::move(counts);
  return program;
}

TheoryProfile TheoryCompiler::profile(const LearnedSpec& learned) {
  if (chooses(*learned.profile)) throw not_predicted(fmt::format("a condition in the profile of '{}'", learned.name));
  TheoryProfile result;
  std::vector<int> kept;
  const ExpressionPtr next = with_variances(learned.profile, kept, result);
  std::vector<int> ends;
  for (int r = 0; r < s_.stream_registers(); ++r) ends.push_back(r);
  TheoryRegisters given = registers(std::move(ends), kept);
  for (std::size_t i = 0; i < kept.size(); ++i) result.variances[i].second = given.of(kept[i]);
  result.program = given.take();
  result.next = fold(*next, s_, formula_.text);
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
           .memory = s_.stack == StackKind::decoder,
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

bool TheoryCompiler::chooses(const Expression& e) {
  return e.kind == Expression::Kind::conditional ||
         std::any_of(e.children.begin(), e.children.end(), [](const ExpressionPtr& c) { return chooses(*c); });
}

ExpressionPtr TheoryCompiler::with_variances(const ExpressionPtr& e, std::vector<int>& kept, TheoryProfile& result) {
  if (e->kind == Expression::Kind::call && e->name == "var" && e->children.size() == 1) {
    kept.push_back(materialise(linear(*e->children[0])));
    result.variances.emplace_back(fmt::format("#{}", kept.size()), -1);
    return named(result.variances.back().first).expression;
  }
  if (e->kind == Expression::Kind::name && wires_.contains(e->name))
    throw not_predicted(fmt::format("a profile that reads '{}' otherwise than by var", e->name));
  Expression copy = *e;
  for (ExpressionPtr& child : copy.children) child = with_variances(child, kept, result);
  return std::make_shared<const Expression>(std::move(copy));
}

NotPredictedError TheoryCompiler::not_predicted(const std::string& what) const {
  return NotPredictedError(fmt::format("scheme '{}': the theory has no rule for {}", s_.scheme.name, what));
}

NotPredictedError TheoryCompiler::not_predicted(const Expression& e) const {
  return not_predicted(fmt::format("'{}'", print_expression(e)));
}

bool TheoryCompiler::is_branch(const std::string& name) const {
  if (!branch_.empty()) return name == "f";
  return name == "attn" || name == "ffn" || name == "cross";
}

const Expression& TheoryCompiler::chosen(const Expression& e) const {
  return value_of(fold(*e.children[0], s_, formula_.text), place_) != 0 ? *e.children[1] : *e.children[2];
}

const LearnedSpec* TheoryCompiler::learned(const Expression& e) const {
  if (e.kind != Expression::Kind::name) return nullptr;
  const auto found = std::find_if(s_.scheme.learned.begin(), s_.scheme.learned.end(),
                                  [&](const LearnedSpec& spec) { return spec.name == e.name; });
  return found == s_.scheme.learned.end() ? nullptr : &*found;
}

TheoryCompiler::Sort TheoryCompiler::sort_of(const Expression& e) const {
  if (e.kind == Expression::Kind::name) {
    if (wires_.contains(e.name)) return Sort::wire;
    const LearnedSpec* spec = learned(e);
    const bool listed = spec != nullptr && spec->extent == LearnedSpec::Extent::listed;
    return weights_.contains(e.name) || listed ? Sort::weights : Sort::number;
  }
  if (e.kind == Expression::Kind::conditional) return sort_of(chosen(e));
  if (e.kind == Expression::Kind::call) {
    if (is_branch(e.name) || is_norm_name(e.name)) return Sort::wire;
    if (is_one_of(e.name, {"copies", "append", "sum", "weigh", "mix", "spread", "flat"})) return Sort::wire;
    if (is_one_of(e.name, {"dot", "matmul", "transpose", "matrix", "sinkhorn"})) return Sort::weights;
  }
  Sort sort = Sort::number;
  for (const ExpressionPtr& child : e.children) sort = std::max(sort, sort_of(*child));
  for (const NamedArgument& argument : e.named) sort = std::max(sort, sort_of(*argument.value));
  return sort;
}

bool TheoryCompiler::is_several(const Expression& e) const {
  if (e.kind == Expression::Kind::name) {
    const auto found = wires_.find(e.name);
    return found != wires_.end() && (found->second.form != TheoryWires::Form::plain || found->second.read_only);
  }
  if (e.kind == Expression::Kind::conditional) return is_several(chosen(e));
  if (e.kind == Expression::Kind::call) {
    if (is_one_of(e.name, {"copies", "append", "mix", "spread", "flat"})) return true;
    if (is_branch(e.name) || is_one_of(e.name, {"sum", "weigh"})) return false;
  }
  return std::any_of(e.children.begin(), e.children.end(), [&](const ExpressionPtr& c) { return is_several(*c); });
}

Coefficient TheoryCompiler::number(const Expression& e) const {
  if (is_weights(e)) throw not_predicted(e);
  return fold(e, s_, formula_.text);
}

TheorySum TheoryCompiler::linear(const Expression& e) {
  TheoryWires value = wires(e);
  if (value.form != TheoryWires::Form::plain || value.read_only) throw not_predicted(e);
  return std::move(value.parts[0]);
}

TheoryWires TheoryCompiler::wires(const Expression& e) {
  switch (e.kind) {
    case Expression::Kind::name:
      if (const auto found = wires_.find(e.name); found != wires_.end()) return found->second;
      throw FormulaError(formula_.text, e.span, "this is a number; expected a wire such as x");
    case Expression::Kind::conditional: return wires(chosen(e));
    case Expression::Kind::call: return call(e);
    case Expression::Kind::unary: return scaled(wires(*e.children[0]), {-1.0});
    case Expression::Kind::binary: return binary(e);
    default: break;
  }
  throw not_predicted(e);
}

TheoryWires TheoryCompiler::binary(const Expression& e) {
  const Expression &left = *e.children[0], &right = *e.children[1];
  if (e.name == "*" && !is_wire(left)) return scaled(wires(right), number(left));
  if (e.name == "*" && !is_wire(right)) return scaled(wires(left), number(right));
  if (e.name == "/" && !is_wire(right)) {
    const Coefficient divisor = number(right);
    if (divisor.expression == nullptr && divisor.value == 0)
      throw FormulaError(formula_.text, right.span, "this is zero");
    return scaled(wires(left), divisor, "/");
  }
  if ((e.name == "+" || e.name == "-") && is_wire(left) && is_wire(right)) {
    TheoryWires a = wires(left);
    const TheoryWires b = e.name == "-" ? scaled(wires(right), {-1.0}) : wires(right);
    if (a.form != b.form || a.form == TheoryWires::Form::growing || a.parts.size() != b.parts.size() || a.read_only ||
        b.read_only)
      throw not_predicted(e);
    for (std::size_t i = 0; i < a.parts.size(); ++i) a.parts[i] = plus(std::move(a.parts[i]), b.parts[i]);
    return a;
  }
  throw not_predicted(e);
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
