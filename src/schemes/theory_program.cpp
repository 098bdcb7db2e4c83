// Compiles one wiring of a formula: wires become registers, sums of scaled wires become one instruction.
#include "schemes/theory_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "norma/schemes/trace.h"

namespace norma {
namespace {

using Instruction = TheoryInstruction;
using Step = Instruction::Op;

constexpr double kRmsEps = 1e-6;  // of the function rms, and far below any stream

// A sum of scaled wires, each named by the value that made it.
using Linear = std::vector<Instruction::Term>;

ExpressionPtr tree_of(const Coefficient& c) {
  if (c.expression != nullptr) return c.expression;
  return std::make_shared<const Expression>(Expression{.kind = Expression::Kind::number, .number = c.value});
}

Coefficient combined(const char* op, const Coefficient& a, const Coefficient& b) {
  if (a.expression == nullptr && b.expression == nullptr) {
    if (op[0] == '+') return {a.value + b.value};
    return {op[0] == '/' ? a.value / b.value : a.value * b.value};
  }
  if (op[0] == '*' && a.expression == nullptr && a.value == 1) return b;
  return {.expression = std::make_shared<const Expression>(
              Expression{.kind = Expression::Kind::binary, .name = op, .children = {tree_of(a), tree_of(b)}})};
}

class Compiler {
 public:
  Compiler(const Formula& formula, const std::string& branch, const TheorySurroundings& surroundings,
           const Variables& place)
      : formula_(formula), branch_(branch), s_(surroundings), place_(place) {
    streams_.push_back("x");
    for (const NamedExpression& stream : s_.scheme.streams) {
      if (stream.name != "x") streams_.push_back(stream.name);  // x may be given a start as well
    }
    for (std::size_t i = 0; i < streams_.size(); ++i) wires_[streams_[i]] = {{static_cast<int>(i), {1.0}}};
    values_ = static_cast<int>(streams_.size());
  }

  TheoryProgram run() {
    for (const Statement& statement : formula_.statements) {
      const std::string target = statement.target.empty() ? "x" : statement.target;
      if (is_wire(*statement.value)) {
        Linear value = linear(*statement.value);
        wires_[target] = value.size() == 1 ? std::move(value) : Linear{{materialise(std::move(value)), {1.0}}};
      } else {
        throw not_predicted(fmt::format("a number that is named '{}' in a formula", target));
      }
    }
    std::vector<int> ends;
    for (const std::string& stream : streams_) ends.push_back(materialise(wires_.at(stream)));
    return allocate(ends);
  }

 private:
  NotPredictedError not_predicted(const std::string& what) const {
    return NotPredictedError(fmt::format("scheme '{}': the theory has no rule for {}", s_.scheme.name, what));
  }

  bool is_branch(const std::string& name) const {
    if (!branch_.empty()) return name == "f";
    return name == "attn" || name == "ffn" || name == "cross";
  }

  const Expression& chosen(const Expression& e) const {
    return value_of(fold(*e.children[0], s_, formula_.text), place_) != 0 ? *e.children[1] : *e.children[2];
  }

  bool is_wire(const Expression& e) const {
    if (e.kind == Expression::Kind::name) return wires_.contains(e.name);
    if (e.kind == Expression::Kind::conditional) return is_wire(chosen(e));
    if (e.kind == Expression::Kind::call && (is_branch(e.name) || is_norm_name(e.name))) return true;
    return std::any_of(e.children.begin(), e.children.end(), [&](const ExpressionPtr& c) { return is_wire(*c); }) ||
           std::any_of(e.named.begin(), e.named.end(), [&](const NamedArgument& a) { return is_wire(*a.value); });
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

  Linear linear(const Expression& e) {
    switch (e.kind) {
      case Expression::Kind::name:
        if (const auto found = wires_.find(e.name); found != wires_.end()) return found->second;
        throw FormulaError(formula_.text, e.span, "this is a number; expected a wire such as x");
      case Expression::Kind::conditional: return linear(chosen(e));
      case Expression::Kind::call: return call(e);
      case Expression::Kind::unary: return scaled(linear(*e.children[0]), {-1.0});
      case Expression::Kind::binary: return binary(e);
      default: break;
    }
    throw not_predicted(fmt::format("'{}'", print_expression(e)));
  }

  Linear binary(const Expression& e) {
    const Expression &left = *e.children[0], &right = *e.children[1];
    const auto number = [&](const Expression& part) { return fold(part, s_, formula_.text); };
    if (e.name == "*" && !is_wire(left)) return scaled(linear(right), number(left));
    if (e.name == "*" && !is_wire(right)) return scaled(linear(left), number(right));
    if (e.name == "/" && !is_wire(right)) {
      const Coefficient divisor = number(right);
      if (divisor.expression == nullptr && divisor.value == 0)
        throw FormulaError(formula_.text, right.span, "this is zero");
      return scaled(linear(left), divisor, "/");
    }
    if ((e.name == "+" || e.name == "-") && is_wire(left) && is_wire(right)) {
      const Linear a = linear(left), b = linear(right);
      return plus(a, e.name == "-" ? scaled(b, {-1.0}) : b);
    }
    throw not_predicted(fmt::format("'{}'", print_expression(e)));
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

  Linear call(const Expression& e) {
    if (e.children.size() != 1 || !e.named.empty())
      throw not_predicted(fmt::format("'{}' with {} arguments", e.name, e.children.size() + e.named.size()));
    const Expression& argument = *e.children[0];
    if (is_norm_name(e.name)) return {{norm_call(e, argument), {1.0}}};
    if (is_branch(e.name)) return {{branch_call(e, argument, false), {1.0}}};
    const int from = materialise(linear(argument));
    if (e.name == "sg") return {{emit({.op = Step::stop, .terms = {{from, {1.0}}}}), {1.0}}};
    if (e.name == "rms") return {{emit({.op = Step::norm, .terms = {{from, {1.0}}}, .eps = kRmsEps}), {1.0}}};
    if (e.name == "unit") {
      const double length = 1 / std::sqrt(static_cast<double>(s_.config.width));
      return {{emit({.op = Step::norm, .terms = {{from, {1.0}}}}), {length}}};
    }
    if (e.name == "tanh") return {{emit({.op = Step::tanh, .terms = {{from, {1.0}}}}), {1.0}}};
    throw not_predicted(fmt::format("the function '{}'", e.name));
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
    if (name == "cross") throw not_predicted("cross-attention");
    const auto kind = name == "ffn" ? BranchTheory::Kind::ffn : BranchTheory::Kind::attention;
    const int from = materialise(linear(argument));
    return emit({.op = Step::branch, .terms = {{from, {1.0}}}, .branch = kind, .normed = normed});
  }

  // Drops what nobody reads, then gives each value a register; a stream's last value takes the stream's own.
  TheoryProgram allocate(const std::vector<int>& ends) {
    std::vector<int> last_use(static_cast<std::size_t>(values_), -1);
    const int end = static_cast<int>(instructions_.size());
    for (const int value : ends) last_use[static_cast<std::size_t>(value)] = end;
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
    std::vector<int> register_of(static_cast<std::size_t>(values_), -1);
    std::vector<int> free_at;  // by register: the last instruction that reads what it holds
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      register_of[s] = static_cast<int>(s);
      free_at.push_back(last_use[s]);
    }
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const std::size_t value = static_cast<std::size_t>(kept[i].to);
      int target = -1;
      for (std::size_t s = 0; s < ends.size(); ++s) {
        if (ends[s] == kept[i].to && free_at[s] <= order_[i]) target = static_cast<int>(s);
      }
      for (std::size_t r = streams_.size(); target < 0 && r < free_at.size(); ++r) {
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
  std::vector<std::string> streams_;
  std::map<std::string, Linear> wires_;
  std::vector<Instruction> instructions_;
  std::vector<int> order_;  // of the instructions that are kept, where they stood before
  int values_ = 0;
};

}  // namespace

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

const TheoryProgram& FormulaPrograms::at(const Variables& layer_and_sublayer) {
  if (only_ != nullptr) return *only_;
  key_.clear();
  outcome(conditions_, layer_and_sublayer, key_);
  auto found = programs_.find(key_);
  if (found == programs_.end()) {
    Compiler compiler(formula_, branch_, surroundings_, layer_and_sublayer);
    found = programs_.emplace(key_, compiler.run()).first;
    if (conditions_.empty()) only_ = &found->second;
  }
  return found->second;
}

}  // namespace norma
