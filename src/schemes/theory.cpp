// Runs compiled formulas on second moments: forward for the stream and its changes, backward for gradients.
#include "norma/schemes/theory.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "norma/schemes/trace.h"
#include "schemes/theory_moments.h"
#include "schemes/theory_program.h"

namespace norma {
namespace {

using Instruction = TheoryInstruction;
using Step = Instruction::Op;
using BranchKind = BranchTheory::Kind;

// How init gains g move a branch that was measured with gain 1: its input and output are scaled, and changes of its
// weights count for more or less. Squares throughout.
struct BranchScale {
  double input = 1, output = 1;
  double weight = 1;
  double noise_last = 1, noise_first = 1, noise_scores = 1;
};

// The gain of a role over Xavier.
class RoleGains {
 public:
  RoleGains(const TheorySurroundings& surroundings) : s_(surroundings) {
    for (const auto& [rule, entries] : s_.scheme.rules) {
      auto* target = rule == "init.gain" ? &gains_ : rule == "init.std" ? &deviations_ : nullptr;
      if (target == nullptr) continue;  // rules of the optimiser
      for (const NamedExpression& entry : entries) {
        if (!moves_branches(entry.name)) continue;
        target->emplace(entry.name, fold(*entry.value, s_, print_expression(*entry.value)));
      }
    }
  }

  bool constant() const {
    const auto fixed = [](const auto& entry) { return entry.second.expression == nullptr; };
    return std::all_of(gains_.begin(), gains_.end(), fixed) &&
           std::all_of(deviations_.begin(), deviations_.end(), fixed);
  }

  BranchScale scale(BranchKind kind, bool normed, const Variables& place) const {
    return kind == BranchKind::ffn ? ffn(normed, place) : attention(normed, place);
  }

 private:
  static bool moves_branches(const std::string& role) {
    static const std::vector<std::string> roles = {"all", "block", "weight", "query", "key", "value", "out", "ffn"};
    return std::find(roles.begin(), roles.end(), role) != roles.end();
  }

  static const Coefficient* rule(const std::map<std::string, Coefficient>& rules, const char* role) {
    for (const char* name : {role, "weight", "block", "all"}) {
      if (const auto found = rules.find(name); found != rules.end()) return &found->second;
    }
    return nullptr;
  }

  double gain(const char* role, double xavier, const Variables& place) const {
    const Coefficient *factor = rule(gains_, role), *deviation = rule(deviations_, role);
    const double given = deviation == nullptr ? 1 : value_of(*deviation, place) / xavier;
    return given * (factor == nullptr ? 1 : value_of(*factor, place));
  }

  BranchScale ffn(bool normed, const Variables& place) const {
    const double d = static_cast<double>(s_.config.width);
    const double hidden = s_.config.hidden == 0 ? 4 * d : static_cast<double>(s_.config.hidden);
    const double xavier = std::sqrt(2 / (d + hidden));
    const double first = gain("ffn", xavier, place);
    const double last = gain(deviations_.contains("out") ? "out" : "ffn", xavier, place);
    const double in = first * first, out = last * last;
    if (normed) return {in, 1, 1 / out, 1 / out, 1 / in, 1};
    return {in, out, 1, 1, out / in, 1};
  }

  BranchScale attention(bool normed, const Variables& place) const {
    const double xavier = std::sqrt(1 / static_cast<double>(s_.config.width));
    const double q = gain("query", xavier, place), k = gain("key", xavier, place);
    const double v = gain("value", xavier, place), o = gain("out", xavier, place);
    const double sharpness = q * k, value = v * v,
                 out = o * o;  // the scores of x are those of sqrt(q k) x with gains 1
    const double scores = (q * q + k * k) / (2 * sharpness * sharpness);
    if (normed) return {sharpness, 1, 1 / out, 1 / out, 1 / value, scores};
    if (values_are_normed()) return {sharpness, out, 1, 1, out / value, out * scores};
    return {sharpness,         value * out / sharpness, value / sharpness,
            value / sharpness, out / sharpness,         value * out / sharpness * scores};
  }

  bool values_are_normed() const {
    const auto options = s_.scheme.branch_options.find("attention");
    return options != s_.scheme.branch_options.end() &&
           (options->second.contains("v") || options->second.contains("inner"));
  }

  const TheorySurroundings& s_;
  std::map<std::string, Coefficient> gains_, deviations_;
};

// What the backward pass needs of one executed instruction.
struct Record {
  const Instruction* instruction = nullptr;
  std::int64_t layer = 0;
  double first = 0, second = 0;    // norm: the factor; branch: variance and correlation of its input; tanh: too
  std::uint32_t coefficients = 0;  // combine: where they begin
  std::uint32_t scale = 0;         // branch: which BranchScale
  int branch = -1;                 // index into Theory::branches
};

class Propagation {
 public:
  Propagation(const Scheme& scheme, const BranchTables& tables, const TheoryConfig& config)
      : scheme_(scheme),
        tables_(tables),
        config_(config),
        surroundings_(
            theory_surroundings(scheme, config, !tables.attention_normed.empty() && !tables.ffn_normed.empty())),
        gains_(surroundings_),
        constant_gains_(gains_.constant()) {
    check();
    if (const Formula* layer = scheme.formula("layer")) {
      formulas_.emplace_back(*layer, "", surroundings_);
    } else {
      for (const char* key : {"attention", "ffn"}) {
        const Formula* own = scheme.formula(key);
        formulas_.emplace_back(own != nullptr ? *own : *scheme.formula("sublayer"), key, surroundings_);
      }
    }
  }

  // Compiles every formula at every layer, which finds what no rule covers.
  void compile_all() {
    start();
    for (std::int64_t layer = 1; layer <= config_.layers; ++layer) {
      place_["l"] = static_cast<double>(layer);
      for (std::size_t f = 0; f < formulas_.size(); ++f) {
        place_["k"] = static_cast<double>(2 * (layer - 1) + 1) + static_cast<double>(f);
        for (const Instruction& instruction : formulas_[f].at(place_).instructions) {
          for (const Instruction::Term& term : instruction.terms) value_of(term.coefficient, place_);
        }
      }
    }
    if (const Formula* formula = scheme_.formula("final"))
      FormulaPrograms(*formula, "attention", surroundings_).at(place_);
  }

  Theory run() {
    start();
    const auto steps = static_cast<std::size_t>(config_.layers) * formulas_.size();
    theory_.streams.reserve(steps);
    theory_.branches.reserve(2 * static_cast<std::size_t>(config_.layers));
    records_.reserve(4 * steps);
    coefficients_.reserve(2 * steps);
    std::vector<std::size_t> begins;
    begins.reserve(steps);
    double &l = place_["l"], &k = place_["k"];
    for (std::int64_t layer = 1; layer <= config_.layers; ++layer) {
      l = static_cast<double>(layer);
      for (std::size_t f = 0; f < formulas_.size(); ++f) {
        k = static_cast<double>(2 * (layer - 1) + 1) + static_cast<double>(f);
        begins.push_back(records_.size());
        execute(formulas_[f].at(place_), layer);
        theory_.streams.push_back(
            {.layer = layer, .rms = std::sqrt(forward_.at(0)[kOwn]), .correlation = correlation(0), .gradient_rms = 0});
      }
    }
    const std::size_t closing = records_.size();
    std::optional<FormulaPrograms> final;
    if (const Formula* formula = scheme_.formula("final")) {
      final.emplace(*formula, "attention", surroundings_);
      execute(final->at(place_), config_.layers);
    }
    theory_.output_rms = std::sqrt(forward_.at(0)[kOwn]);
    theory_.amplification = forward_.at(0)[kChangeOwn];
    gradient_.set(0, {1, 0});
    retrace(closing, records_.size());
    for (std::size_t i = begins.size(); i-- > 0;) {
      retrace(begins[i], i + 1 < begins.size() ? begins[i + 1] : closing);
      theory_.streams[i].gradient_rms = std::sqrt(gradient_.at(0)[kOwn]);
    }
    return std::move(theory_);
  }

 private:
  // Of a token with itself and of two different tokens: the wires, and forward also their changes.
  enum Lane : std::size_t { kOwn, kShared, kChangeOwn, kChangeShared };
  using Forward = MomentMatrix<4>;
  using Backward = MomentMatrix<2>;

  void check() const {
    if (config_.layers < 1) fail("a stack needs at least one layer, but {} were asked for", config_.layers);
    if (scheme_.weights.unit)
      throw NotPredictedError(
          fmt::format("scheme '{}': the theory has no rule for weights that are kept at unit length", scheme_.name));
    const auto options = scheme_.branch_options.find("attention");
    if (options != scheme_.branch_options.end() && options->second.contains("scores"))
      throw NotPredictedError(fmt::format(
          "scheme '{}': the theory has no rule for scores that are carried from layer to layer", scheme_.name));
  }

  // x and the streams that begin as a multiple of it.
  void start() {
    place_ = {{"l", 1.0}, {"k", 1.0}};
    std::vector<double> factors = {1};
    for (const NamedExpression& stream : scheme_.streams) {
      const auto at = [&](double x0) {
        TheorySurroundings with_input = surroundings_;
        with_input.numbers["x0"] = x0;
        return value_of(fold(*stream.value, with_input, print_expression(*stream.value)), place_);
      };
      const auto refuse = [&] {
        return NotPredictedError(
            fmt::format("scheme '{}': stream '{}' does not begin as a multiple of x0", scheme_.name, stream.name));
      };
      double factor = 0;
      try {
        factor = at(1);
        if (at(2) != 2 * factor) throw refuse();
      } catch (const FormulaError&) {  // functions of wires, such as copies(x0, 4)
        throw refuse();
      }
      stream.name == "x" ? factors[0] = factor : factors.emplace_back(factor);
    }
    if (factors.size() > kMostRegisters) fail("scheme '{}' has too many streams", scheme_.name);
    for (std::size_t i = 0; i < factors.size(); ++i) {
      for (std::size_t j = 0; j < factors.size(); ++j) {
        const double both = factors[i] * factors[j];
        forward_.set(static_cast<int>(i), static_cast<int>(j),
                     {both * config_.input.own, both * config_.input.shared, 0, 0});
      }
    }
  }

  double correlation(int wire) const {
    const auto& cell = forward_.at(wire);
    return cell[kOwn] > 0 ? std::clamp(cell[kShared] / cell[kOwn], 0.0, 1.0) : 0;
  }

  void execute(const TheoryProgram& program, std::int64_t layer) {
    registers_ = std::max(registers_, program.registers);
    centres_ = centres_ || program.centres;
    kept_ = centres_ ? 1 - 1 / static_cast<double>(config_.width) : 1;
    for (const Instruction& instruction : program.instructions) {
      Record record{.instruction = &instruction, .layer = layer};
      switch (instruction.op) {
        case Step::combine: combine(instruction, record); break;
        case Step::stop: forward_linear(instruction, {{1.0}}); break;
        case Step::norm: norm(instruction, record); break;
        case Step::tanh: squash(instruction, record); break;
        case Step::branch: branch(instruction, record); break;
      }
      records_.push_back(record);
    }
  }

  void forward_linear(const Instruction& instruction, const std::array<double, kMostRegisters>& factors) {
    forward_.assign_sum(instruction.to, instruction.terms, factors.data(), registers_);
  }

  void combine(const Instruction& instruction, Record& record) {
    if (instruction.terms.size() > kMostRegisters) fail("scheme '{}': a sum is too long", scheme_.name);
    std::array<double, kMostRegisters> factors = {};
    record.coefficients = static_cast<std::uint32_t>(coefficients_.size());
    for (std::size_t i = 0; i < instruction.terms.size(); ++i) {
      factors[i] = value_of(instruction.terms[i].coefficient, place_);
      coefficients_.push_back(factors[i]);
    }
    forward_linear(instruction, factors);
  }

  void norm(const Instruction& instruction, Record& record) {
    const int from = instruction.terms[0].from;
    const double variance = forward_.at(from)[kOwn] + instruction.eps;
    if (!(variance > 0)) fail("scheme '{}': a norm reads a stream that is zero", scheme_.name);
    record.first = 1 / std::sqrt(variance);
    forward_linear(instruction, {{record.first}});
  }

  void squash(const Instruction& instruction, Record& record) {
    const int from = instruction.terms[0].from;
    record.first = forward_.at(from)[kOwn];
    record.second = correlation(from);
    const SquashResponse response = squash_response(instruction.slope, record.first, record.second);
    const Forward::Cell before = forward_.at(from);
    forward_linear(instruction, {{response.mean_slope}});
    forward_.set(instruction.to, {response.output.own, response.output.shared, before[kChangeOwn] * response.slope.own,
                                  before[kChangeShared] * response.slope.shared});
  }

  const BranchTable& table(const Instruction& instruction) const {
    if (instruction.branch == BranchKind::ffn) return instruction.normed ? tables_.ffn_normed : tables_.ffn;
    return instruction.normed ? tables_.attention_normed : tables_.attention;
  }

  // Init gains rarely depend on the layer; then each kind of branch has one scale for the whole stack.
  std::uint32_t scale_of(const Instruction& instruction) {
    const std::size_t kind = (instruction.branch == BranchKind::ffn ? 2u : 0u) + (instruction.normed ? 1u : 0u);
    if (constant_gains_ && fixed_scale_[kind] >= 0) return static_cast<std::uint32_t>(fixed_scale_[kind]);
    scales_.push_back(gains_.scale(instruction.branch, instruction.normed, place_));
    fixed_scale_[kind] = static_cast<int>(scales_.size()) - 1;
    return static_cast<std::uint32_t>(scales_.size() - 1);
  }

  void branch(const Instruction& instruction, Record& record) {
    const int from = instruction.terms[0].from, to = instruction.to;
    record.scale = scale_of(instruction);
    const BranchScale& scale = scales_[record.scale];
    const double variance = scale.input * forward_.at(from)[kOwn];
    record.first = variance;
    record.second = correlation(from);
    const BranchResponse response = table(instruction).at(variance, record.second);
    const Moments change = spread(forward_.at(from)[kChangeOwn], forward_.at(from)[kChangeShared], response.change_own,
                                  response.change_shared);
    const double through = scale.input * scale.output * kept_, strength = scale.output * variance;
    const auto noise = [&](double Moments::*part) {
      return variance * (scale.noise_last * response.noise_last.*part + scale.noise_first * response.noise_first.*part +
                         scale.noise_scores * response.noise_scores.*part);
    };
    forward_.isolate(to,
                     {strength * response.output.own, strength * response.output.shared,
                      through * change.own + noise(&Moments::own), through * change.shared + noise(&Moments::shared)},
                     registers_);
    record.branch = static_cast<int>(theory_.branches.size());
    theory_.branches.push_back({.layer = record.layer,
                                .kind = instruction.branch,
                                .rms = std::sqrt(forward_.at(to)[kOwn]),
                                .weight_gradient = 0});
  }

  // What a linear map makes of moments that are in part each token's own and in part shared by all.
  static Moments spread(double total, double common, const Moments& own, const Moments& shared) {
    common = std::clamp(common, 0.0, total);
    const double single = total - common;
    return {single * own.own + common * shared.own, single * own.shared + common * shared.shared};
  }

  void retrace(std::size_t begin, std::size_t end) {
    for (std::size_t i = end; i-- > begin;) {
      const Record& record = records_[i];
      const Instruction& instruction = *record.instruction;
      const int from = instruction.terms.empty() ? -1 : instruction.terms[0].from, to = instruction.to;
      switch (instruction.op) {
        case Step::combine: backward_linear(instruction, &coefficients_[record.coefficients]); break;
        case Step::norm: backward_linear(instruction, &record.first); break;
        case Step::stop: {
          const double nothing = 0;
          backward_linear(instruction, &nothing);
          break;
        }
        case Step::tanh: {
          const SquashResponse response = squash_response(instruction.slope, record.first, record.second);
          const Backward::Cell arriving = gradient_.at(to);
          backward_linear(instruction, &response.mean_slope);
          const double mean = response.mean_slope * response.mean_slope;
          const Backward::Cell& passed = gradient_.at(from);
          gradient_.set(from, {passed[kOwn] + (response.slope.own - mean) * arriving[kOwn],
                               passed[kShared] + (response.slope.shared - mean) * arriving[kShared]});
          break;
        }
        case Step::branch: backward_branch(instruction, record, from, to); break;
      }
    }
  }

  void backward_linear(const Instruction& instruction, const double* factors) {
    gradient_.pull_back(instruction.to, instruction.terms, factors, registers_);
  }

  void backward_branch(const Instruction& instruction, const Record& record, int from, int to) {
    const BranchScale& scale = scales_[record.scale];
    const BranchResponse response = table(instruction).at(record.first, record.second);
    const auto [total, common] = gradient_.at(to);
    const Moments arriving = spread(total, common, response.gradient_own, response.gradient_shared);
    const Moments weight = spread(total, common, {response.weight_own, 0}, {response.weight_shared, 0});
    theory_.branches[static_cast<std::size_t>(record.branch)].weight_gradient =
        std::sqrt(std::max(0.0, scale.weight * record.first * weight.own));
    const double through = scale.input * scale.output * kept_;
    gradient_.isolate(to, {}, registers_);
    const Backward::Cell& there = gradient_.at(from);
    gradient_.set(from, {there[kOwn] + through * arriving.own, there[kShared] + through * arriving.shared});
  }

  const Scheme& scheme_;
  const BranchTables& tables_;
  const TheoryConfig& config_;
  TheorySurroundings surroundings_;
  RoleGains gains_;
  bool constant_gains_;
  std::vector<FormulaPrograms> formulas_;
  Variables place_;
  int registers_ = 1;
  // What passes a branch has no preferred direction, so that a norm which removes the mean takes 1/d of it. Along the
  // stream itself nothing is lost: where branches are homogeneous, a gradient stays orthogonal to what was normed.
  bool centres_ = false;
  double kept_ = 1;
  Forward forward_;
  Backward gradient_;
  std::vector<Record> records_;
  std::vector<double> coefficients_;
  std::vector<BranchScale> scales_;
  std::array<int, 4> fixed_scale_ = {-1, -1, -1, -1};
  Theory theory_;
};

std::string norm_on_branch_in(const Expression& e) {
  if (e.kind == Expression::Kind::call && is_norm_name(e.name) && e.children.size() == 1) {
    const Expression& inner = *e.children[0];
    if (inner.kind == Expression::Kind::call && (inner.name == "f" || inner.name == "attn" || inner.name == "ffn"))
      return e.name;
  }
  for (const ExpressionPtr& child : e.children) {
    if (std::string found = norm_on_branch_in(*child); !found.empty()) return found;
  }
  return "";
}

}  // namespace

std::string norm_on_branches(const Scheme& scheme) {
  for (const auto& [key, formula] : scheme.formulas) {
    for (const Statement& statement : formula.statements) {
      if (std::string found = norm_on_branch_in(*statement.value); !found.empty()) return found;
    }
  }
  return "";
}

void check_predicted(const Scheme& scheme, const TheoryConfig& config) {
  Propagation(scheme, BranchTables{}, config).compile_all();
}

Theory predict(const Scheme& scheme, const BranchTables& branches, const TheoryConfig& config) {
  return Propagation(scheme, branches, config).run();
}

double log_slope(const std::vector<double>& x, const std::vector<double>& y) {
  NORMA_ASSERT(x.size() == y.size() && x.size() >= 2);
  const double n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] > 0) || !(y[i] > 0)) return std::numeric_limits<double>::quiet_NaN();
    const double a = std::log(x[i]), b = std::log(y[i]);
    sx += a;
    sy += b;
    sxx += a * a;
    sxy += a * b;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

Exponents fit_exponents(const Scheme& scheme, const BranchTables& branches, TheoryConfig config,
                        const std::vector<std::int64_t>& depths) {
  std::vector<double> n, rms, first, last, amplification;
  for (const std::int64_t depth : depths) {
    config.layers = depth;
    const Theory theory = predict(scheme, branches, config);
    n.push_back(static_cast<double>(depth));
    rms.push_back(theory.streams.back().rms);
    amplification.push_back(theory.amplification);
    double lowest = 0, highest = 0;
    for (const BranchTheory& branch : theory.branches) {
      if (branch.kind != BranchTheory::Kind::ffn) continue;
      if (lowest == 0) lowest = branch.weight_gradient;
      highest = branch.weight_gradient;
    }
    first.push_back(lowest);
    last.push_back(highest);
  }
  return {.stream_rms = log_slope(n, rms),
          .last_gradient = log_slope(n, last),
          .first_gradient = log_slope(n, first),
          .amplification = log_slope(n, amplification)};
}

}  // namespace norma
