#include "theory/share.h"

#include <cmath>
#include <optional>

#include "norma/schemes/evaluate.h"
#include "norma/schemes/place.h"
#include "norma/schemes/trace.h"

namespace norma {
namespace {

// a x + b f(..)
struct Residual {
  double keep = 0;
  std::optional<double> add = {};
  bool normed = false;  // b norm(f(..))
};

bool keeps_direction(const Expression& e) {
  return e.kind == Expression::Kind::call && is_norm_name(e.name) && e.name != "dyt" && e.children.size() == 1;
}

// Reads a formula at one place, whose numbers and learned values are known.
class ResidualReader {
 public:
  explicit ResidualReader(const Variables& numbers) : numbers_(numbers) {}

  std::optional<Residual> formula(const Expression& e) const {
    if (e.kind == Expression::Kind::conditional) return formula(chosen(e));
    const std::optional<Residual> found = keeps_direction(e) ? sum(*e.children[0]) : sum(e);
    return found && found->keep != 0 && found->add ? found : std::nullopt;
  }

 private:
  double number(const Expression& e) const { return evaluate(e, numbers_, print_expression(e)); }

  const Expression& chosen(const Expression& e) const {
    return number(*e.children[0]) != 0 ? *e.children[1] : *e.children[2];
  }

  static bool is_branch(const Expression& e) { return e.kind == Expression::Kind::call && e.name == "f"; }

  std::optional<Residual> sum(const Expression& e) const {
    if (e.kind == Expression::Kind::name && e.name == "x") return Residual{.keep = 1};
    if (is_branch(e)) return Residual{.add = 1};
    if (keeps_direction(e) && is_branch(*e.children[0])) return Residual{.add = 1, .normed = true};
    if (e.kind == Expression::Kind::conditional) return sum(chosen(e));
    if (e.kind != Expression::Kind::binary) return std::nullopt;
    const Expression &left = *e.children[0], &right = *e.children[1];
    if (e.name == "+" || e.name == "-") return total(sum(left), sum(right), e.name == "+" ? 1 : -1);
    if (e.name == "*") {
      if (const auto by_left = scaled(sum(right), left, false)) return by_left;
      return scaled(sum(left), right, false);
    }
    return e.name == "/" ? scaled(sum(left), right, true) : std::nullopt;
  }

  static std::optional<Residual> total(std::optional<Residual> a, const std::optional<Residual>& b, double sign) {
    if (!a || !b || (a->add && b->add)) return std::nullopt;
    a->keep += sign * b->keep;
    if (!b->add) return a;
    a->add = sign * *b->add;
    a->normed = b->normed;
    return a;
  }

  std::optional<Residual> scaled(std::optional<Residual> value, const Expression& by, bool divided) const {
    if (!value) return std::nullopt;
    const double factor = divided ? 1 / number(by) : number(by);
    value->keep *= factor;
    if (value->add) *value->add *= factor;
    return value;
  }

  const Variables& numbers_;
};

class ShareReader {
 public:
  ShareReader(const Scheme& scheme, const ModelConfig& model, const Prediction& prediction)
      : scheme_(scheme), model_(model), layers_(prediction.layers), theory_(prediction) {}

  std::vector<double> run() {
    if (scheme_.formula("layer") != nullptr || !scheme_.streams.empty()) return {};
    if (theory_.branches.size() != theory_.streams.size()) return {};
    try {
      if (model_.family == Family::encoder_decoder) add_stack(StackKind::encoder, {"attention", "ffn"});
      const bool single = model_.family != Family::encoder_decoder;
      add_stack(single ? StackKind::single : StackKind::decoder,
                single ? Kinds{"attention", "ffn"} : Kinds{"attention", "cross", "ffn"});
    } catch (const FormulaError&) {  // a number of the formula is none at the start
      return {};
    }
    return shares_.size() == theory_.streams.size() ? shares_ : std::vector<double>();
  }

 private:
  using Kinds = std::vector<const char*>;

  void add_stack(StackKind stack, const Kinds& kinds) {
    double before = theory_.input_rms;
    std::int64_t k = 1;
    for (std::int64_t layer = 1; layer <= layers_; ++layer) {
      for (const char* kind : kinds) {
        const std::size_t site = shares_.size();
        if (site >= theory_.streams.size()) return;
        const Variables numbers = numbers_of({.stack = stack,
                                              .layers = layers_,
                                              .other_layers = stack == StackKind::single ? 0 : layers_,
                                              .width = model_.width,
                                              .heads = model_.heads,
                                              .layer = layer,
                                              .sublayer = k++},
                                             site);
        const std::optional<Residual> found = residual(kind, numbers);
        if (!found) return;
        const double branch = found->normed ? 1 : theory_.branches[site].rms;
        shares_.push_back(std::abs(*found->add) * branch / (std::abs(found->keep) * before));
        before = theory_.streams[site].rms;
      }
    }
  }

  // And learned values as they start; of vectors every element is alike.
  Variables numbers_of(const Place& place, std::size_t site) const {
    Variables numbers = numbers_at_start(scheme_, place);
    for (const LearnedSpec& learned : scheme_.learned) {
      if (learned.extent == LearnedSpec::Extent::listed) continue;
      if (learned.profile == nullptr) {
        numbers[learned.name] = evaluate(*learned.init, numbers, print_expression(*learned.init));
      } else if (theory_.profiled.size() == theory_.streams.size()) {
        numbers[learned.name] = theory_.profiled[site].value;
      }
    }
    return numbers;
  }

  std::optional<Residual> residual(const char* kind, const Variables& numbers) const {
    const Formula* own = scheme_.formula(kind);
    const Formula* formula = own != nullptr ? own : scheme_.formula("sublayer");
    if (formula == nullptr || formula->statements.size() != 1) return std::nullopt;
    return ResidualReader(numbers).formula(*formula->statements[0].value);
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
