#include "theory/share.h"

#include <cmath>
#include <optional>
#include <variant>

#include "norma/schemes/evaluate.h"
#include "norma/schemes/functions.h"
#include "norma/schemes/place.h"
#include "norma/schemes/trace.h"
#include "norma/schemes/walk.h"

namespace norma {
namespace {

// a x + b f(..)
struct Residual {
  double keep = 0;
  std::optional<double> add = {};
  bool normed = false;                                       // b norm(f(..))
  enum class Form { sum, branch, closed } form = Form::sum;  // a call of f as it is; a norm of the whole, which ends it
};

// The algebra of shares (walk.h): numbers, residuals, and what is neither.
class ShareAlgebra {
 public:
  using Value = std::variant<std::monostate, double, Residual>;

  ShareAlgebra(const Variables& numbers, std::string_view text) : known_(numbers), numbers_(numbers, text) {}

  // What a whole formula keeps and adds.
  static std::optional<Residual> whole(const Value& value) {
    const Residual* found = std::get_if<Residual>(&value);
    return found != nullptr && found->keep != 0 && found->add ? std::optional(*found) : std::nullopt;
  }

  Value number(const Expression& e) const { return numbers_.number(e); }
  static Value text(const Expression& /*e*/) { return {}; }
  Value name(const Expression& e) const {
    if (e.name == "x") return Residual{.keep = 1};
    return known_.contains(e.name) ? Value(numbers_.name(e)) : Value();
  }

  Value unary(const Expression& e, const Value& a) const {
    if (const double* value = std::get_if<double>(&a)) return numbers_.unary(e, *value);
    return e.name == "-" ? scaled(a, -1) : Value();
  }

  Value binary(const Expression& e, const Value& left, const Value& right) const {
    const double *a = std::get_if<double>(&left), *b = std::get_if<double>(&right);
    if (a != nullptr && b != nullptr) return numbers_.binary(e, *a, *b);
    if (e.name == "*" && a != nullptr) return scaled(right, *a);
    if (e.name == "*" && b != nullptr) return scaled(left, *b);
    if (e.name == "/" && b != nullptr) return scaled(left, 1 / *b);
    return e.name == "+" ? total(left, right, 1) : e.name == "-" ? total(left, right, -1) : Value();
  }

  std::optional<Value> answered(const Expression& e, const Value& a) const {
    const double* value = std::get_if<double>(&a);
    const std::optional<double> known = value == nullptr ? std::nullopt : numbers_.answered(e, *value);
    return known ? std::optional<Value>(*known) : std::nullopt;
  }

  static void expects(const Expression& /*e*/) {}
  Value call(const Expression& e, const std::vector<Value>& arguments) const {
    if (e.name == "f") return Residual{.add = 1, .form = Residual::Form::branch};
    if (is_norm_name(e.name)) return e.name != "dyt" && arguments.size() == 1 ? normed(arguments[0]) : Value();
    const Function* function = find_function(e.name);
    if (function == nullptr || arguments.size() != function->arguments.size()) return {};
    if (function->share && function->share.value == ShareRule::same) return arguments[0];
    std::vector<double> numbers;
    for (const Value& argument : arguments) {
      const double* value = std::get_if<double>(&argument);
      if (value == nullptr || !function->number) return {};
      numbers.push_back(*value);
    }
    return numbers_.call(e, numbers);
  }

  static std::optional<bool> decides(const Expression& /*e*/, const Value& condition) {
    const double* value = std::get_if<double>(&condition);
    return value == nullptr ? std::nullopt : std::optional(*value != 0);
  }
  static Value either(const Expression& /*e*/, const Value&, const Value&, const Value&) { return {}; }

 private:
  // A residual that more can be done to.
  static const Residual* open(const Value& value) {
    const Residual* found = std::get_if<Residual>(&value);
    return found == nullptr || found->form == Residual::Form::closed ? nullptr : found;
  }

  static Value normed(const Value& value) {
    const Residual* found = open(value);
    if (found == nullptr || !found->add) return {};
    if (found->form == Residual::Form::branch) return Residual{.add = 1, .normed = true};
    Residual whole = *found;
    whole.form = Residual::Form::closed;
    return whole;
  }

  static Value total(const Value& left, const Value& right, double sign) {
    const Residual *a = open(left), *b = open(right);
    if (a == nullptr || b == nullptr || (a->add && b->add)) return {};
    Residual sum{.keep = a->keep + sign * b->keep, .add = a->add, .normed = a->normed};
    if (!b->add) return sum;
    sum.add = sign * *b->add;
    sum.normed = b->normed;
    return sum;
  }

  static Value scaled(const Value& value, double factor) {
    const Residual* found = open(value);
    if (found == nullptr) return {};
    Residual result{.keep = factor * found->keep, .add = found->add, .normed = found->normed};
    if (result.add) *result.add *= factor;
    return result;
  }

  const Variables& known_;
  NumberAlgebra numbers_;
};

class ShareReader {
 public:
  ShareReader(const Scheme& scheme, const ModelConfig& model, const Prediction& prediction)
      : scheme_(scheme), model_(model), layers_(prediction.layers), theory_(prediction) {}

  std::vector<double> run() {
    if (scheme_.formula("layer") != nullptr || !scheme_.streams.empty()) return {};
    if (theory_.branches.size() != theory_.streams.size()) return {};
    try {
      for (const StackSites& stack : model_.family->sites(model_)) add_stack(stack);
    } catch (const FormulaError&) {  // a number of the formula is none at the start
      return {};
    }
    return shares_.size() == theory_.streams.size() ? shares_ : std::vector<double>();
  }

 private:
  void add_stack(const StackSites& stack) {
    double before = theory_.input_rms;
    std::int64_t k = 1;
    for (std::int64_t layer = 1; layer <= layers_; ++layer) {
      for (const LayerBranch& branch : stack.branches) {
        if (!branch.in(layer - 1)) continue;
        const std::size_t site = shares_.size();
        if (site >= theory_.streams.size()) return;
        const Variables numbers = numbers_of({.stack = stack.kind,
                                              .layers = layers_,
                                              .other_layers = stack.kind == StackKind::single ? 0 : layers_,
                                              .width = model_.width,
                                              .heads = model_.heads,
                                              .layer = layer,
                                              .sublayer = k++,
                                              .sublayers = sublayers_before(stack.branches, layers_)},
                                             site);
        const std::optional<Residual> found = residual(*branch.kind, numbers);
        if (!found) return;
        const double added = found->normed ? 1 : theory_.branches[site].rms;
        shares_.push_back(std::abs(*found->add) * added / (std::abs(found->keep) * before));
        before = theory_.streams[site].rms;
      }
    }
  }

  // And learned values as they start; of vectors every element is alike.
  Variables numbers_of(const Place& place, std::size_t site) const {
    Variables numbers = numbers_at_start(scheme_, place);
    for (const LearnedSpec& learned : scheme_.learned) {
      if (learned.extent == LearnedSpec::Extent::listed || learned.from == LearnedSpec::From::condition) continue;
      if (learned.profile == nullptr) {
        numbers[learned.name] = evaluate(*learned.init, numbers, print_expression(*learned.init));
      } else if (theory_.profiled.size() == theory_.streams.size()) {
        numbers[learned.name] = theory_.profiled[site].value;
      }
    }
    return numbers;
  }

  std::optional<Residual> residual(const BranchKind& kind, const Variables& numbers) const {
    const Formula* own = scheme_.formula(kind.key);
    const Formula* formula = own != nullptr ? own : scheme_.formula("sublayer");
    if (formula == nullptr || formula->statements.size() != 1) return std::nullopt;
    ShareAlgebra shares(numbers, formula->text);
    return ShareAlgebra::whole(walk(*formula->statements[0].value, shares));
  }

  const Scheme& scheme_;
  const ModelConfig& model_;
  std::int64_t layers_;
  const Prediction& theory_;
  std::vector<double> shares_;
};

}  // namespace

std::vector<double> branch_shares(const Scheme& scheme, const ModelConfig& model, const Prediction& prediction) {
  return ShareReader(scheme, model, prediction).run();
}

}  // namespace norma
