// Functions of wires: branches, norms, and what is done with copies.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "norma/schemes/branch_kinds.h"
#include "norma/schemes/trace.h"
#include "theory/compiler.h"

namespace norma {
namespace {

constexpr double kRmsEps = 1e-6;  // of the function rms, and far below any stream

}  // namespace

bool TheoryCompiler::is_branch(const std::string& name) const {
  return branch_ != nullptr ? name == "f" : branch_called(name) != nullptr;
}

void TheoryCompiler::expects(const Expression& e) const {
  const Function* function = find_function(e.name);
  const std::size_t expected = function == nullptr ? 1 : function->arguments.size();
  if (e.children.size() != expected || !e.named.empty())
    throw not_predicted(fmt::format("'{}' with {} arguments", e.name, e.children.size() + e.named.size()));
  if (function == nullptr && !is_branch(e.name) && !is_norm_name(e.name))
    throw not_predicted(fmt::format("the function '{}'", e.name));
}

TheoryCompiler::Value TheoryCompiler::call(const Expression& e, const std::vector<Value>& arguments) {
  if (is_branch(e.name)) return branch_call(e, arguments[0]);
  if (is_norm_name(e.name)) return norm_call(e, arguments[0]);
  const Function& function = *find_function(e.name);
  const bool of_numbers = std::all_of(arguments.begin(), arguments.end(), is_number);
  if (!of_numbers || !function.number) return function_call(e, function, arguments);
  std::vector<ExpressionPtr> numbers;
  for (std::size_t i = 0; i < arguments.size(); ++i) numbers.push_back(folded(*e.children[i], arguments[i]));
  return folding_.call(e, std::move(numbers));
}

TheoryCompiler::Value TheoryCompiler::function_call(const Expression& e, const Function& function,
                                                    const std::vector<Value>& arguments) {
  const auto no_rule = [&] {
    if (profile_ != nullptr) return reads_otherwise(e);
    const std::string_view why = function.moments.why_not;
    return not_predicted(fmt::format("the function '{}'{}{}", e.name, why.empty() ? "" : ": ", why));
  };
  if (!function.moments) throw no_rule();
  switch (const MomentRule rule = function.moments.value) {
    case MomentRule::variance:
      if (profile_ == nullptr) throw no_rule();
      return of_variance(e, arguments[0]);
    case MomentRule::total: return sum_of(e, wires(*e.children[0], arguments[0]));
    case MomentRule::flatten: return flat(e, wires(*e.children[0], arguments[0]));
    case MomentRule::normalise:
    case MomentRule::shorten:
    case MomentRule::stop:
    case MomentRule::squash:
    case MomentRule::rectify:
      if (function.number && !is_wire(arguments[0])) return of_weights(e, function, arguments);
      return of_wire(e, rule, arguments[0]);
    case MomentRule::repeat:
    case MomentRule::append:
    case MomentRule::weigh:
    case MomentRule::mix:
    case MomentRule::spread: return of_copies(e, rule, arguments);
    case MomentRule::read: return read_from(e, arguments);
    default: break;
  }
  if (is_wire(arguments[0])) throw no_rule();
  return of_weights(e, function, arguments);
}

// The variance is a number that is found on the way, under a name that no formula can mention.
TheoryCompiler::Value TheoryCompiler::of_variance(const Expression& e, const Value& argument) {
  kept_.push_back(materialise(linear(*e.children[0], argument)));
  profile_->variances.emplace_back(fmt::format("#{}", kept_.size()), -1);
  return named(profile_->variances.back().first).expression;
}

TheoryWires TheoryCompiler::norm_call(const Expression& e, const Value& argument) {
  const Expression& inner = *e.children[0];
  const TheoryWires value = wires(inner, argument);
  if (value.form != TheoryWires::Form::plain || value.read_only) return only_read(value, true);
  const NormInfo& info = norm_called(e.name, s_.config.norm);
  const bool of_branch = inner.kind == Expression::Kind::call && is_branch(inner.name);
  if (of_branch && s_.measured_normed) {
    instructions_.back().normed = true;  // which made the argument
    return value;
  }
  const int from = materialise(linear(inner, argument));
  switch (info.kind) {
    case NormKind::layer:
    case NormKind::weightless:
      return plain(
          emit({.op = TheoryInstruction::Op::norm, .terms = {{from, {1.0}}}, .eps = info.eps, .centres = true}));
    case NormKind::rms:
    case NormKind::prms:
    case NormKind::scale:
      return plain(emit({.op = TheoryInstruction::Op::norm, .terms = {{from, {1.0}}}, .eps = info.eps}));
    case NormKind::dyt: {
      double alpha = 0.5;
      for (const NormTensor& tensor : info.parameters) {
        if (tensor.name == "alpha") alpha = tensor.initial;
      }
      return plain(emit({.op = TheoryInstruction::Op::tanh, .terms = {{from, {1.0}}}, .slope = alpha}));
    }
    case NormKind::batch:
    case NormKind::instance:
    case NormKind::group:
    case NormKind::sample: return image_norm(info, from);
    case NormKind::graph:
    case NormKind::pair:
    case NormKind::mean: throw not_predicted(fmt::format("{}, whose statistics go beyond a token", info.title));
  }
  throw not_predicted(std::string(info.title));
}

// Tokens of the theory are the pixels of all images here: what they share is what such a norm removes. Groups of many
// channels have no mean to speak of.
TheoryWires TheoryCompiler::image_norm(const NormInfo& info, int from) {
  const bool images = std::ranges::all_of(s_.branches, [](const BranchKind* kind) { return kind->key == "conv"; });
  if (!images) throw not_predicted(fmt::format("{}, whose statistics go beyond a token", info.title));
  return plain(emit({.op = TheoryInstruction::Op::norm,
                     .terms = {{from, {1.0}}},
                     .eps = info.eps,
                     .removes_shared = info.kind == NormKind::batch || info.kind == NormKind::instance}));
}

TheoryWires TheoryCompiler::branch_call(const Expression& e, const Value& argument) {
  const BranchKind* kind = branch_ != nullptr ? branch_ : branch_called(e.name);
  const int from = materialise(linear(*e.children[0], argument));
  TheoryInstruction instruction{.op = TheoryInstruction::Op::branch, .terms = {{from, {1.0}}}};
  instruction.branch = kind;
  const bool has = std::find(s_.branches.begin(), s_.branches.end(), kind) != s_.branches.end();
  if (kind->reads == BranchKind::Reads::memory) {
    if (!has) throw not_predicted(kind->title + " in a stack of its own");
    instruction.terms.push_back({s_.memory(), {1.0}});
  }
  if (!has) throw not_predicted(fmt::format("branches of {}, which layers of this model do not have", kind->title));
  return plain(emit(std::move(instruction)));
}

TheoryWires TheoryCompiler::of_wire(const Expression& e, MomentRule rule, const Value& argument) {
  const Expression& inner = *e.children[0];
  const bool normalises = rule == MomentRule::normalise, shortens = rule == MomentRule::shorten;
  const TheoryWires value = wires(inner, argument);
  if ((normalises || shortens) && (value.form != TheoryWires::Form::plain || value.read_only))
    return only_read(value, normalises);
  const int from = materialise(linear(inner, argument));
  if (rule == MomentRule::stop) return plain(emit({.op = TheoryInstruction::Op::stop, .terms = {{from, {1.0}}}}));
  if (rule == MomentRule::squash) return plain(emit({.op = TheoryInstruction::Op::tanh, .terms = {{from, {1.0}}}}));
  if (rule == MomentRule::rectify) return plain(emit({.op = TheoryInstruction::Op::relu, .terms = {{from, {1.0}}}}));
  if (normalises) return plain(emit({.op = TheoryInstruction::Op::norm, .terms = {{from, {1.0}}}, .eps = kRmsEps}));
  const double length = 1 / std::sqrt(static_cast<double>(s_.config.width));
  return plain(TheorySum{{emit({.op = TheoryInstruction::Op::norm, .terms = {{from, {1.0}}}}), {length}}});
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

TheoryWires TheoryCompiler::of_copies(const Expression& e, MomentRule rule, const std::vector<Value>& arguments) {
  const Expression &first = *e.children[0], &second = *e.children[1];
  if (rule == MomentRule::repeat) {
    const double count = value_of(number(second, arguments[1]), place_);
    if (!(count >= 1 && count <= kMostCopies && count == std::floor(count))) throw not_predicted(e);
    return {.form = TheoryWires::Form::copies,
            .parts = std::vector<TheorySum>(static_cast<std::size_t>(count), linear(first, arguments[0]))};
  }
  if (rule == MomentRule::append) {
    TheoryWires stack = wires(first, arguments[0]);
    if (stack.form != TheoryWires::Form::growing || stack.read_only) throw not_predicted(e);
    stack.parts[0] = plus(std::move(stack.parts[0]), linear(second, arguments[1]));
    stack.count = combined("+", *stack.count, {1.0});
    return stack;
  }
  if (!is_weights(arguments[0]) || !is_wire(arguments[1])) throw not_predicted(e);
  const TheoryWeights by = settled(first, weights(first, arguments[0]));
  if (rule == MomentRule::spread) return spread(e, by, linear(second, arguments[1]));
  const TheoryWires value = wires(second, arguments[1]);
  if (value.read_only || value.form == TheoryWires::Form::plain) throw not_predicted(e);
  return rule == MomentRule::mix ? mixed(e, by, value) : weighed(e, by, value);
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
