// Functions of wires: branches, norms, and what is done with copies.
#include <fmt/format.h>

#include <cmath>

#include "norma/schemes/trace.h"
#include "theory/compiler.h"

namespace norma {
namespace {

constexpr double kRmsEps = 1e-6;  // of the function rms, and far below any stream

}  // namespace

TheoryWires TheoryCompiler::call(const Expression& e) {
  if (is_one_of(e.name, {"copies", "append", "weigh", "mix", "spread"}) && e.children.size() == 2 && e.named.empty())
    return of_copies(e);
  if (e.children.size() != 1 || !e.named.empty())
    throw not_predicted(fmt::format("'{}' with {} arguments", e.name, e.children.size() + e.named.size()));
  const Expression& argument = *e.children[0];
  if (is_branch(e.name)) return plain(branch_call(e, argument, false));
  if (e.name == "sum") return sum_of(e, wires(argument));
  if (e.name == "flat") return flat(e, wires(argument));
  const bool norm = is_norm_name(e.name) || e.name == "rms";
  if ((norm || e.name == "unit") && is_several(argument)) return only_read(wires(argument), norm);
  if (is_norm_name(e.name)) return plain(norm_call(e, argument));
  const int from = materialise(linear(argument));
  if (e.name == "sg") return plain(emit({.op = TheoryInstruction::Op::stop, .terms = {{from, {1.0}}}}));
  if (e.name == "rms")
    return plain(emit({.op = TheoryInstruction::Op::norm, .terms = {{from, {1.0}}}, .eps = kRmsEps}));
  if (e.name == "unit") {
    const double length = 1 / std::sqrt(static_cast<double>(s_.config.width));
    return plain(TheorySum{{emit({.op = TheoryInstruction::Op::norm, .terms = {{from, {1.0}}}}), {length}}});
  }
  if (e.name == "tanh") return plain(emit({.op = TheoryInstruction::Op::tanh, .terms = {{from, {1.0}}}}));
  throw not_predicted(fmt::format("the function '{}'", e.name));
}

int TheoryCompiler::norm_call(const Expression& e, const Expression& argument) {
  const NormInfo& info = norm_called(e.name, s_.config.norm);
  const bool of_branch = argument.kind == Expression::Kind::call && is_branch(argument.name) &&
                         argument.children.size() == 1 && argument.named.empty();
  if (of_branch && s_.measured_normed) return branch_call(argument, *argument.children[0], true);
  const int from = materialise(linear(argument));
  switch (info.kind) {
    case NormKind::layer:
    case NormKind::weightless:
      return emit({.op = TheoryInstruction::Op::norm, .terms = {{from, {1.0}}}, .eps = info.eps, .centres = true});
    case NormKind::rms:
    case NormKind::prms:
    case NormKind::scale: return emit({.op = TheoryInstruction::Op::norm, .terms = {{from, {1.0}}}, .eps = info.eps});
    case NormKind::dyt: {
      double alpha = 0.5;
      for (const NormTensor& tensor : info.parameters) {
        if (tensor.name == "alpha") alpha = tensor.initial;
      }
      return emit({.op = TheoryInstruction::Op::tanh, .terms = {{from, {1.0}}}, .slope = alpha});
    }
    default: throw not_predicted(fmt::format("{}, whose statistics go beyond a token", info.title));
  }
}

int TheoryCompiler::branch_call(const Expression& e, const Expression& argument, bool normed) {
  const std::string name = e.name == "f" ? branch_ : e.name;
  using Branch = BranchTheory::Kind;
  const int from = materialise(linear(argument));
  TheoryInstruction instruction{.op = TheoryInstruction::Op::branch, .terms = {{from, {1.0}}}, .normed = normed};
  instruction.branch = name == "ffn" ? Branch::ffn : name == "cross" ? Branch::cross : Branch::attention;
  if (name == "cross") {
    if (s_.stack != StackKind::decoder) throw not_predicted("cross-attention in a stack of its own");
    instruction.terms.push_back({s_.memory(), {1.0}});
  }
  return emit(std::move(instruction));
}

TheoryWires TheoryCompiler::only_read(TheoryWires value, bool normed) const {
  if (!value.read_only) value.length = static_cast<double>(s_.config.width);
  value.read_only = true;
  value.normed = normed;
  return value;
}

TheoryWires TheoryCompiler::flat(const Expression& e, TheoryWires value) const {
  if (value.form != TheoryWires::Form::copies || value.read_only) throw not_predicted(e);
  const double length = static_cast<double>(value.parts.size()) * static_cast<double>(s_.config.width);
  return {.read_only = true, .length = length};
}

TheoryWires TheoryCompiler::sum_of(const Expression& e, const TheoryWires& value) const {
  if (value.form == TheoryWires::Form::plain || value.read_only) throw not_predicted(e);
  TheorySum sum;
  for (const TheorySum& part : value.parts) sum = plus(std::move(sum), part);
  return plain(std::move(sum));
}

TheoryWires TheoryCompiler::of_copies(const Expression& e) {
  const Expression &first = *e.children[0], &second = *e.children[1];
  if (e.name == "copies") {
    const double count = value_of(number(second), place_);
    if (!(count >= 1 && count <= kMostCopies && count == std::floor(count))) throw not_predicted(e);
    return {.form = TheoryWires::Form::copies,
            .parts = std::vector<TheorySum>(static_cast<std::size_t>(count), linear(first))};
  }
  if (e.name == "append") {
    TheoryWires stack = wires(first);
    if (stack.form != TheoryWires::Form::growing || stack.read_only) throw not_predicted(e);
    stack.parts[0] = plus(std::move(stack.parts[0]), linear(second));
    stack.count = combined("+", *stack.count, {1.0});
    return stack;
  }
  if (!is_weights(first) || !is_wire(second)) throw not_predicted(e);
  const TheoryWeights by = settled(weights(first), first);
  if (e.name == "spread") return spread(e, by, linear(second));
  const TheoryWires value = wires(second);
  if (value.read_only || value.form == TheoryWires::Form::plain) throw not_predicted(e);
  return e.name == "mix" ? mixed(e, by, value) : weighed(e, by, value);
}

TheoryWires TheoryCompiler::spread(const Expression& e, const TheoryWeights& by, const TheorySum& y) const {
  if (by.count || by.rows != 1 || by.columns > kMostCopies) throw not_predicted(e);
  TheoryWires result{.form = TheoryWires::Form::copies};
  for (int i = 0; i < by.columns; ++i) result.parts.push_back(scaled(y, by.at(0, i)));
  return result;
}

TheoryWires TheoryCompiler::weighed(const Expression& e, const TheoryWeights& by, const TheoryWires& value) const {
  if (by.count.has_value() != value.count.has_value() || by.rows != 1 ||
      by.columns != static_cast<int>(value.parts.size()))
    throw not_predicted(e);
  return plain(row_of(by, 0, value));
}

TheoryWires TheoryCompiler::mixed(const Expression& e, const TheoryWeights& by, const TheoryWires& value) const {
  const int copies = static_cast<int>(value.parts.size());
  if (by.count || value.count || by.rows != copies || by.columns != copies) throw not_predicted(e);
  TheoryWires result{.form = TheoryWires::Form::copies};
  for (int i = 0; i < copies; ++i) result.parts.push_back(row_of(by, i, value));
  return result;
}

}  // namespace norma
