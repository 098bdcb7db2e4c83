// Compiles one wiring of a formula: wires become registers, sums of scaled wires become one instruction.
#include "schemes/theory_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "norma/schemes/trace.h"
#include "schemes/theory_weights.h"

namespace norma {
namespace {

using Instruction = TheoryInstruction;
using Step = Instruction::Op;

constexpr double kRmsEps = 1e-6;  // of the function rms, and far below any stream

// A sum of scaled wires, each named by the value that made it.
using Linear = std::vector<Instruction::Term>;

// A wire: one sum; one for each copy; or, of a stack that grows, that of all its copies.
struct Wires {
  enum class Form { plain, copies, growing };
  Form form = Form::plain;
  std::vector<Linear> parts = {};
  std::optional<Coefficient> count = {};  // growing: of copies
  // Only weights are made of it, so that it matters how many numbers it has and not what they are.
  bool read_only = false;
  double length = 0;    // read_only: of the last axis
  bool normed = false;  // read_only: numbers of rms 1
};

constexpr int kMostCopies = 8;
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

bool one_of(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Compiler {
 public:
  Compiler(const Formula& formula, const std::string& branch, const TheorySurroundings& surroundings,
           const Variables& place)
      : formula_(formula), branch_(branch), s_(surroundings), place_(place) {
    for (const TheoryStream& stream : s_.streams) {
      Wires wires{.form = stream.grows    ? Wires::Form::growing
                          : stream.copies ? Wires::Form::copies
                                          : Wires::Form::plain};
      for (int r = 0; r < stream.registers; ++r) wires.parts.push_back({{stream.first + r, {1.0}}});
      if (stream.grows) wires.count = named(count_name(stream.name));
      wires_[stream.name] = std::move(wires);
    }
    values_ = s_.stream_registers() + (s_.stack == StackKind::decoder ? 1 : 0);
  }

  TheoryProgram run() {
    for (const Statement& statement : formula_.statements) {
      const std::string target = statement.target.empty() ? "x" : statement.target;
      if (is_wire(*statement.value)) {
        Wires value = wires(*statement.value);
        for (Linear& part : value.parts) {
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
      for (const Linear& part : found->second.parts) ends.push_back(materialise(part));
      if (stream.grows && found->second.count->expression->name != count_name(stream.name))
        counts.emplace_back(count_name(stream.name), *found->second.count);
    }
    TheoryProgram program = allocate(ends, {});
    program.counts = std::move(counts);
    return program;
  }

  TheoryProfile profile(const LearnedSpec& learned) {
    if (chooses(*learned.profile)) throw not_predicted(fmt::format("a condition in the profile of '{}'", learned.name));
    TheoryProfile result;
    std::vector<int> kept;
    const ExpressionPtr next = with_variances(learned.profile, kept, result);
    std::vector<int> ends;
    for (int r = 0; r < s_.stream_registers(); ++r) ends.push_back(r);
    result.program = allocate(ends, kept);
    for (std::size_t i = 0; i < kept.size(); ++i)
      result.variances[i].second = register_of_[static_cast<std::size_t>(kept[i])];
    result.next = fold(*next, s_, formula_.text);
    return result;
  }

 private:
  static Coefficient named(const std::string& name) {
    return {.expression = std::make_shared<const Expression>(Expression{.kind = Expression::Kind::name, .name = name})};
  }

  static bool keeps_form(const Wires& value, const TheoryStream& stream) {
    const bool growing = value.form == Wires::Form::growing, copies = value.form == Wires::Form::copies;
    return !value.read_only && growing == stream.grows && copies == (stream.copies && !stream.grows) &&
           static_cast<int>(value.parts.size()) == stream.registers;
  }

  static bool chooses(const Expression& e) {
    return e.kind == Expression::Kind::conditional ||
           std::any_of(e.children.begin(), e.children.end(), [](const ExpressionPtr& c) { return chooses(*c); });
  }

  // An expression in which var(wire) is a name for what that wire's variance will be.
  ExpressionPtr with_variances(const ExpressionPtr& e, std::vector<int>& kept, TheoryProfile& result) {
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

  NotPredictedError not_predicted(const std::string& what) const {
    return NotPredictedError(fmt::format("scheme '{}': the theory has no rule for {}", s_.scheme.name, what));
  }
  NotPredictedError not_predicted(const Expression& e) const {
    return not_predicted(fmt::format("'{}'", print_expression(e)));
  }

  bool is_branch(const std::string& name) const {
    if (!branch_.empty()) return name == "f";
    return name == "attn" || name == "ffn" || name == "cross";
  }

  const Expression& chosen(const Expression& e) const {
    return value_of(fold(*e.children[0], s_, formula_.text), place_) != 0 ? *e.children[1] : *e.children[2];
  }

  const LearnedSpec* learned(const Expression& e) const {
    if (e.kind != Expression::Kind::name) return nullptr;
    const auto found = std::find_if(s_.scheme.learned.begin(), s_.scheme.learned.end(),
                                    [&](const LearnedSpec& spec) { return spec.name == e.name; });
    return found == s_.scheme.learned.end() ? nullptr : &*found;
  }

  enum class Sort { number, weights, wire };

  Sort sort_of(const Expression& e) const {
    if (e.kind == Expression::Kind::name) {
      if (wires_.contains(e.name)) return Sort::wire;
      const LearnedSpec* spec = learned(e);
      const bool listed = spec != nullptr && spec->extent == LearnedSpec::Extent::listed;
      return weights_.contains(e.name) || listed ? Sort::weights : Sort::number;
    }
    if (e.kind == Expression::Kind::conditional) return sort_of(chosen(e));
    if (e.kind == Expression::Kind::call) {
      if (is_branch(e.name) || is_norm_name(e.name)) return Sort::wire;
      if (one_of(e.name, {"copies", "append", "sum", "weigh", "mix", "spread", "flat"})) return Sort::wire;
      if (one_of(e.name, {"dot", "matmul", "transpose", "matrix", "sinkhorn"})) return Sort::weights;
    }
    Sort sort = Sort::number;
    for (const ExpressionPtr& child : e.children) sort = std::max(sort, sort_of(*child));
    for (const NamedArgument& argument : e.named) sort = std::max(sort, sort_of(*argument.value));
    return sort;
  }
  bool is_wire(const Expression& e) const { return sort_of(e) == Sort::wire; }
  bool is_weights(const Expression& e) const { return sort_of(e) == Sort::weights; }

  Coefficient number(const Expression& e) const {
    if (is_weights(e)) throw not_predicted(e);
    return fold(e, s_, formula_.text);
  }

  static Linear scaled(Linear sum, const Coefficient& factor, const char* op = "*") {
    for (Instruction::Term& term : sum) term.coefficient = combined(op, term.coefficient, factor);
    // What is multiplied by zero leaves nothing behind: a branch that has not faded in yet is not there.
    std::erase_if(sum, [](const Instruction::Term& term) {
      return term.coefficient.expression == nullptr && term.coefficient.value == 0;
    });
    return sum;
  }

  static Linear plus(Linear a, const Linear& b) {
    for (const Instruction::Term& term : b) {
      const auto same =
          std::find_if(a.begin(), a.end(), [&](const Instruction::Term& other) { return other.from == term.from; });
      if (same == a.end()) {
        a.push_back(term);
      } else {
        same->coefficient = combined("+", same->coefficient, term.coefficient);
      }
    }
    return a;
  }

  static Wires scaled(Wires value, const Coefficient& factor, const char* op = "*") {
    for (Linear& part : value.parts) part = scaled(std::move(part), factor, op);
    value.normed = false;
    return value;
  }

  // One wire [batch, time, d].
  Linear linear(const Expression& e) {
    Wires value = wires(e);
    if (value.form != Wires::Form::plain || value.read_only) throw not_predicted(e);
    return std::move(value.parts[0]);
  }

  static Wires plain(Linear sum) { return {.parts = {std::move(sum)}}; }
  static Wires plain(int value) { return plain(Linear{{value, {1.0}}}); }

  Wires wires(const Expression& e) {
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

  Wires binary(const Expression& e) {
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
      Wires a = wires(left);
      const Wires b = e.name == "-" ? scaled(wires(right), {-1.0}) : wires(right);
      if (a.form != b.form || a.form == Wires::Form::growing || a.parts.size() != b.parts.size() || a.read_only ||
          b.read_only)
        throw not_predicted(e);
      for (std::size_t i = 0; i < a.parts.size(); ++i) a.parts[i] = plus(std::move(a.parts[i]), b.parts[i]);
      return a;
    }
    throw not_predicted(e);
  }

  // The value that holds a sum; a single unscaled wire is its own.
  int materialise(Linear sum) {
    if (sum.size() == 1 && sum[0].coefficient.expression == nullptr && sum[0].coefficient.value == 1)
      return sum[0].from;
    return emit({.op = Step::combine, .terms = std::move(sum)});
  }

  int emit(Instruction instruction) {
    instruction.to = values_++;
    instructions_.push_back(std::move(instruction));
    return values_ - 1;
  }

  Wires call(const Expression& e) {
    if (one_of(e.name, {"copies", "append", "weigh", "mix", "spread"}) && e.children.size() == 2 && e.named.empty())
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
    if (e.name == "sg") return plain(emit({.op = Step::stop, .terms = {{from, {1.0}}}}));
    if (e.name == "rms") return plain(emit({.op = Step::norm, .terms = {{from, {1.0}}}, .eps = kRmsEps}));
    if (e.name == "unit") {
      const double length = 1 / std::sqrt(static_cast<double>(s_.config.width));
      return plain(Linear{{emit({.op = Step::norm, .terms = {{from, {1.0}}}}), {length}}});
    }
    if (e.name == "tanh") return plain(emit({.op = Step::tanh, .terms = {{from, {1.0}}}}));
    throw not_predicted(fmt::format("the function '{}'", e.name));
  }

  // Whether a wire holds several copies, or all of them in a row.
  bool is_several(const Expression& e) const {
    if (e.kind == Expression::Kind::name) {
      const auto found = wires_.find(e.name);
      return found != wires_.end() && (found->second.form != Wires::Form::plain || found->second.read_only);
    }
    if (e.kind == Expression::Kind::conditional) return is_several(chosen(e));
    if (e.kind == Expression::Kind::call) {
      if (one_of(e.name, {"copies", "append", "mix", "spread", "flat"})) return true;
      if (is_branch(e.name) || one_of(e.name, {"sum", "weigh"})) return false;
    }
    return std::any_of(e.children.begin(), e.children.end(), [&](const ExpressionPtr& c) { return is_several(*c); });
  }

  // Copies, or all of them in a row: followed only as far as weights are made of them.
  Wires only_read(Wires value, bool normed) const {
    if (!value.read_only) value.length = static_cast<double>(s_.config.width);
    value.read_only = true;
    value.normed = normed;
    return value;
  }

  Wires flat(const Expression& e, Wires value) const {
    if (value.form != Wires::Form::copies || value.read_only) throw not_predicted(e);
    const double length = static_cast<double>(value.parts.size()) * static_cast<double>(s_.config.width);
    return {.read_only = true, .length = length};
  }

  Wires sum_of(const Expression& e, const Wires& value) const {
    if (value.form == Wires::Form::plain || value.read_only) throw not_predicted(e);
    Linear sum;
    for (const Linear& part : value.parts) sum = plus(std::move(sum), part);
    return plain(std::move(sum));
  }

  Wires of_copies(const Expression& e) {
    const Expression &first = *e.children[0], &second = *e.children[1];
    if (e.name == "copies") {
      const double count = value_of(number(second), place_);
      if (!(count >= 1 && count <= kMostCopies && count == std::floor(count))) throw not_predicted(e);
      return {.form = Wires::Form::copies,
              .parts = std::vector<Linear>(static_cast<std::size_t>(count), linear(first))};
    }
    if (e.name == "append") {
      Wires stack = wires(first);
      if (stack.form != Wires::Form::growing || stack.read_only) throw not_predicted(e);
      stack.parts[0] = plus(std::move(stack.parts[0]), linear(second));
      stack.count = combined("+", *stack.count, {1.0});
      return stack;
    }
    if (!is_weights(first) || !is_wire(second)) throw not_predicted(e);
    const TheoryWeights by = settled(weights(first), first);
    if (e.name == "spread") return spread(e, by, linear(second));
    const Wires value = wires(second);
    if (value.read_only || value.form == Wires::Form::plain) throw not_predicted(e);
    return e.name == "mix" ? mixed(e, by, value) : weighed(e, by, value);
  }

  Wires spread(const Expression& e, const TheoryWeights& by, const Linear& y) const {
    if (by.count || by.rows != 1 || by.columns > kMostCopies) throw not_predicted(e);
    Wires result{.form = Wires::Form::copies};
    for (int i = 0; i < by.columns; ++i) result.parts.push_back(scaled(y, by.at(0, i)));
    return result;
  }

  Wires weighed(const Expression& e, const TheoryWeights& by, const Wires& value) const {
    if (by.count.has_value() != value.count.has_value() || by.rows != 1 ||
        by.columns != static_cast<int>(value.parts.size()))
      throw not_predicted(e);
    return plain(row_of(by, 0, value));
  }

  Wires mixed(const Expression& e, const TheoryWeights& by, const Wires& value) const {
    const int copies = static_cast<int>(value.parts.size());
    if (by.count || value.count || by.rows != copies || by.columns != copies) throw not_predicted(e);
    Wires result{.form = Wires::Form::copies};
    for (int i = 0; i < copies; ++i) result.parts.push_back(row_of(by, i, value));
    return result;
  }

  static Linear row_of(const TheoryWeights& by, int row, const Wires& value) {
    Linear sum;
    for (int j = 0; j < by.columns; ++j)
      sum = plus(std::move(sum), scaled(value.parts[static_cast<std::size_t>(j)], by.at(row, j)));
    return sum;
  }

  // What the stream adds to weights is left out where it is small, and has no rule where it is not.
  TheoryWeights settled(TheoryWeights by, const Expression& e) const {
    if (by.scatter > kSmallScatter)
      throw not_predicted(
          fmt::format("'{}', which differs between tokens by {:.2g} from the start", print_expression(e), by.scatter));
    by.scatter = 0;
    return by;
  }

  TheoryWeights weights(const Expression& e) {
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
    if (e.kind == Expression::Kind::binary && one_of(e.name, {"+", "-", "*", "/"}))
      return or_refused(combined(e.name.c_str(), weights(*e.children[0]), weights(*e.children[1])));
    if (e.kind != Expression::Kind::call || !e.named.empty() || e.children.empty()) throw not_predicted(e);
    const Expression& first = *e.children[0];
    if (one_of(e.name, {"dot", "matmul"}) && e.children.size() == 2) return read_from(e, first, *e.children[1]);
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

  TheoryWeights matrix(const Expression& e, TheoryWeights by) const {
    const int side = static_cast<int>(std::lround(std::sqrt(by.columns)));
    if (by.count || by.rows != 1 || side * side != by.columns) throw not_predicted(e);
    by.rows = by.columns = side;
    return by;
  }

  // A learned vector or matrix at its start.
  TheoryWeights listed(const LearnedSpec& spec, const Expression& e) const {
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

  int size_of(const Expression& size, const Expression& e) const {
    const double value = value_of(fold(size, s_, print_expression(size)), place_);
    if (!(value >= 1 && value <= 1e9)) throw not_predicted(fmt::format("the learned matrix '{}'", e.name));
    return static_cast<int>(value);
  }

  // dot(x, w), matmul(x, W): zero where the learned w starts at zero, and scattered where it starts at random.
  TheoryWeights read_from(const Expression& e, const Expression& stream, const Expression& by) {
    const LearnedSpec* spec = learned(by);
    const bool sized = spec != nullptr && (e.name == "dot" || spec->extent == LearnedSpec::Extent::listed);
    if (!sized || !is_wire(stream)) throw not_predicted(e);
    const Wires value = wires(stream);
    if (!value.read_only && value.form == Wires::Form::plain) throw not_predicted(e);
    const int copies = value.form == Wires::Form::copies ? static_cast<int>(value.parts.size()) : 1;
    const int columns = e.name == "dot" ? 1 : size_of(*spec->shape.back(), by);
    if (columns > kMostCopies * kMostCopies || (value.form == Wires::Form::growing && e.name != "dot"))
      throw not_predicted(e);
    TheoryWeights result = e.name == "dot" ? equal_weights(1, copies, {0.0}) : equal_weights(copies, columns, {0.0});
    result.count = value.count;
    result.scatter = random_part(e, *spec) * std::sqrt(value.length);
    if (result.scatter > 0 && !value.normed) throw not_predicted(e);
    return result;
  }

  double random_part(const Expression& e, const LearnedSpec& spec) const {
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

  int norm_call(const Expression& e, const Expression& argument) {
    const NormInfo& info = norm_called(e.name, s_.config.norm);
    const bool of_branch = argument.kind == Expression::Kind::call && is_branch(argument.name) &&
                           argument.children.size() == 1 && argument.named.empty();
    if (of_branch && s_.measured_normed) return branch_call(argument, *argument.children[0], true);
    const int from = materialise(linear(argument));
    switch (info.kind) {
      case NormKind::layer:
      case NormKind::weightless:
        return emit({.op = Step::norm, .terms = {{from, {1.0}}}, .eps = info.eps, .centres = true});
      case NormKind::rms:
      case NormKind::prms:
      case NormKind::scale: return emit({.op = Step::norm, .terms = {{from, {1.0}}}, .eps = info.eps});
      case NormKind::dyt: {
        double alpha = 0.5;
        for (const NormTensor& tensor : info.parameters) {
          if (tensor.name == "alpha") alpha = tensor.initial;
        }
        return emit({.op = Step::tanh, .terms = {{from, {1.0}}}, .slope = alpha});
      }
      default: throw not_predicted(fmt::format("{}, whose statistics go beyond a token", info.title));
    }
  }

  int branch_call(const Expression& e, const Expression& argument, bool normed) {
    const std::string name = e.name == "f" ? branch_ : e.name;
    using Kind = BranchTheory::Kind;
    const int from = materialise(linear(argument));
    Instruction instruction{.op = Step::branch, .terms = {{from, {1.0}}}, .normed = normed};
    instruction.branch = name == "ffn" ? Kind::ffn : name == "cross" ? Kind::cross : Kind::attention;
    if (name == "cross") {
      if (s_.stack != StackKind::decoder) throw not_predicted("cross-attention in a stack of its own");
      instruction.terms.push_back({s_.memory(), {1.0}});
    }
    return emit(std::move(instruction));
  }

  // Drops what nobody reads, then gives each value a register; a stream's last value takes the stream's own.
  TheoryProgram allocate(const std::vector<int>& ends, const std::vector<int>& kept_values) {
    std::vector<int> last_use(static_cast<std::size_t>(values_), -1);
    const int end = static_cast<int>(instructions_.size());
    for (const int value : ends) last_use[static_cast<std::size_t>(value)] = end;
    for (const int value : kept_values) last_use[static_cast<std::size_t>(value)] = end;
    std::vector<Instruction> kept;
    for (int i = end; i-- > 0;) {
      Instruction& instruction = instructions_[static_cast<std::size_t>(i)];
      if (last_use[static_cast<std::size_t>(instruction.to)] < 0) continue;
      for (const Instruction::Term& term : instruction.terms) {
        int& use = last_use[static_cast<std::size_t>(term.from)];
        use = std::max(use, i);
      }
      kept.push_back(std::move(instruction));
      order_.push_back(i);
    }
    std::reverse(kept.begin(), kept.end());
    std::reverse(order_.begin(), order_.end());
    check_repeated(kept);
    return assign(std::move(kept), last_use, ends);
  }

  void check_repeated(const std::vector<Instruction>& kept) const {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (kept[i].op == Step::branch && kept[j].op == Step::branch && kept[i].branch == kept[j].branch)
          throw not_predicted("a branch that is called twice with the same weights");
      }
    }
  }

  TheoryProgram assign(std::vector<Instruction> kept, const std::vector<int>& last_use, const std::vector<int>& ends) {
    std::vector<int>& register_of = register_of_;
    register_of.assign(static_cast<std::size_t>(values_), -1);
    std::vector<int> free_at;  // by register: the last instruction that reads what it holds
    for (std::size_t s = 0; s < ends.size(); ++s) {
      register_of[s] = static_cast<int>(s);
      free_at.push_back(last_use[s]);
    }
    if (s_.stack == StackKind::decoder) {  // the memory stays as it is
      register_of[ends.size()] = static_cast<int>(ends.size());
      free_at.push_back(static_cast<int>(instructions_.size()) + 1);
    }
    const std::size_t held_before = free_at.size();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const std::size_t value = static_cast<std::size_t>(kept[i].to);
      int target = -1;
      for (std::size_t s = 0; s < ends.size(); ++s) {
        if (ends[s] == kept[i].to && free_at[s] <= order_[i]) target = static_cast<int>(s);
      }
      for (std::size_t r = held_before; target < 0 && r < free_at.size(); ++r) {
        if (free_at[r] <= order_[i]) target = static_cast<int>(r);
      }
      if (target < 0) {
        target = static_cast<int>(free_at.size());
        free_at.push_back(0);
      }
      register_of[value] = target;
      free_at[static_cast<std::size_t>(target)] = last_use[value];
      for (Instruction::Term& term : kept[i].terms) term.from = register_of[static_cast<std::size_t>(term.from)];
      kept[i].to = target;
    }
    for (std::size_t s = 0; s < ends.size(); ++s) {
      const int held = register_of[static_cast<std::size_t>(ends[s])];
      if (held == static_cast<int>(s)) continue;
      if (held < static_cast<int>(s)) throw not_predicted("a stream that takes the place of another");
      kept.push_back({.op = Step::combine, .to = static_cast<int>(s), .terms = {{held, {1.0}}}});
    }
    if (free_at.size() > kMostRegisters)
      throw not_predicted(fmt::format("a formula that keeps {} wires at once", free_at.size()));
    const bool centres =
        std::any_of(kept.begin(), kept.end(), [](const Instruction& i) { return i.op == Step::norm && i.centres; });
    return {std::move(kept), static_cast<int>(free_at.size()), centres};
  }

  const Formula& formula_;
  const std::string& branch_;
  const TheorySurroundings& s_;
  const Variables& place_;
  std::map<std::string, Wires> wires_;
  std::map<std::string, TheoryWeights> weights_;
  std::vector<Instruction> instructions_;
  std::vector<int> order_;        // of the instructions that are kept, where they stood before
  std::vector<int> register_of_;  // by value
  int values_ = 0;
};

bool appended_to(const Expression& e, const std::string& stream) {
  if (e.kind == Expression::Kind::call && e.name == "append" && !e.children.empty() &&
      e.children[0]->kind == Expression::Kind::name && e.children[0]->name == stream)
    return true;
  return std::any_of(e.children.begin(), e.children.end(),
                     [&](const ExpressionPtr& child) { return appended_to(*child, stream); });
}

bool grows(const Scheme& scheme, const std::string& stream) {
  return std::any_of(scheme.formulas.begin(), scheme.formulas.end(), [&](const auto& entry) {
    const std::vector<Statement>& statements = entry.second.statements;
    return std::any_of(statements.begin(), statements.end(),
                       [&](const Statement& statement) { return appended_to(*statement.value, stream); });
  });
}

}  // namespace

std::vector<TheoryStream> theory_streams(const TheorySurroundings& surroundings) {
  const Scheme& scheme = surroundings.scheme;
  const Variables first = {{"l", 1.0}, {"k", 1.0}};
  std::vector<TheoryStream> streams = {{.name = "x"}};
  for (const NamedExpression& given : scheme.streams) {
    const auto refused = [&] {
      return NotPredictedError(
          fmt::format("scheme '{}': stream '{}' does not begin as a multiple of x0", scheme.name, given.name));
    };
    const auto at = [&](const Expression& e, double x0) {
      TheorySurroundings with_input = surroundings;
      with_input.numbers["x0"] = x0;
      return value_of(fold(e, with_input, print_expression(e)), first);
    };
    TheoryStream stream{.name = given.name};
    const Expression& start = *given.value;
    stream.copies = start.kind == Expression::Kind::call && start.name == "copies" && start.children.size() == 2;
    try {
      const Expression& one = stream.copies ? *start.children[0] : start;
      stream.factor = at(one, 1);
      if (at(one, 2) != 2 * stream.factor) throw refused();
      if (stream.copies) stream.count = at(*start.children[1], 1);
    } catch (const FormulaError&) {  // functions of wires
      throw refused();
    }
    stream.grows = stream.copies && grows(scheme, given.name);
    if (!(stream.count >= 1 && stream.count <= kMostCopies && stream.count == std::floor(stream.count)) ||
        (stream.name == "x" && stream.copies))
      throw refused();
    stream.registers = stream.copies && !stream.grows ? static_cast<int>(stream.count) : 1;
    if (stream.name == "x") {  // x may be given a start as well
      streams[0].factor = stream.factor;
    } else {
      stream.first = streams.back().first + streams.back().registers;
      streams.push_back(std::move(stream));
    }
  }
  if (streams.back().first + streams.back().registers >= kMostRegisters)
    throw NotPredictedError(fmt::format("scheme '{}': the theory has no rule for so many streams", scheme.name));
  return streams;
}

TheoryProfile compile_profile(const LearnedSpec& learned, const std::string& branch,
                              const TheorySurroundings& surroundings, const Variables& place) {
  const Formula formula{.text = print_expression(*learned.profile), .statements = {}};
  return Compiler(formula, branch, surroundings, place).profile(learned);
}

FormulaPrograms::FormulaPrograms(const Formula& formula, std::string branch, const TheorySurroundings& surroundings)
    : formula_(formula), branch_(std::move(branch)), surroundings_(surroundings) {
  for (const Statement& statement : formula.statements) {
    for (Condition& condition : conditions_in(*statement.value)) conditions_.push_back(std::move(condition));
  }
}

std::vector<FormulaPrograms::Condition> FormulaPrograms::conditions_in(const Expression& e) const {
  if (e.kind == Expression::Kind::conditional) {
    return {{fold(*e.children[0], surroundings_, formula_.text), conditions_in(*e.children[1]),
             conditions_in(*e.children[2])}};
  }
  std::vector<Condition> found;
  for (const ExpressionPtr& child : e.children) {
    for (Condition& condition : conditions_in(*child)) found.push_back(std::move(condition));
  }
  return found;
}

void FormulaPrograms::outcome(const std::vector<Condition>& conditions, const Variables& place, std::string& found) {
  for (const Condition& condition : conditions) {
    const bool yes = value_of(condition.condition, place) != 0;
    found += yes ? 'y' : 'n';
    outcome(yes ? condition.yes : condition.no, place, found);
  }
}

const TheoryProgram& FormulaPrograms::at(const Variables& place) {
  if (only_ != nullptr) return *only_;
  key_.clear();
  outcome(conditions_, place, key_);
  auto found = programs_.find(key_);
  if (found == programs_.end()) {
    Compiler compiler(formula_, branch_, surroundings_, place);
    found = programs_.emplace(key_, compiler.run()).first;
    if (conditions_.empty()) only_ = &found->second;
  }
  return found->second;
}

}  // namespace norma
