// Runs compiled formulas on second moments: forward for the stream and its changes, backward for gradients.
#include "norma/schemes/theory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

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

struct AttentionGains {
  double query = 1, key = 1, value = 1, out = 1;
};

// Of cross-attention: what scales its queries' input, and what its memory.
struct CrossScale {
  BranchScale query = {};
  double memory = 1;
};

// The gain of a role over Xavier.
class RoleGains {
 public:
  explicit RoleGains(const TheorySurroundings& surroundings) : s_(surroundings) {}

  void read() {
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

  AttentionGains attention(const Variables& place) const {
    const double xavier = std::sqrt(1 / static_cast<double>(s_.config.width));
    return {gain("query", xavier, place), gain("key", xavier, place), gain("value", xavier, place),
            gain("out", xavier, place)};
  }

  // Cross-attention was measured with queries and memory of one size. With gains q, k, v, o it is K f(a x, b m), where
  // a b = q k keeps the scores and a and b bring both inputs to that size.
  CrossScale cross(bool normed, double variance, double memory_variance, const Variables& place) const {
    const double xavier = std::sqrt(1 / static_cast<double>(s_.config.width));
    const double q = gain("cross_query", xavier, place), k = gain("cross_key", xavier, place);
    const double v = gain("cross_value", xavier, place), o = gain("cross_out", xavier, place);
    const double ratio = variance > 0 ? std::sqrt(memory_variance / variance) : 1, value = v * v, out = o * o;
    const double sharpness = std::abs(q * k), memory = sharpness / ratio, scores = (1 / (q * q) + 1 / (k * k)) / 2;
    CrossScale scale{.query = {.input = sharpness * ratio}, .memory = memory};
    BranchScale& by = scale.query;
    if (normed) {
      by.weight = by.noise_last = 1 / out;
      by.noise_first = 1 / value;
      by.noise_scores = scores;
    } else if (values_are_normed("cross")) {
      by.output = out;
      by.noise_first = out / value;
      by.noise_scores = out * scores;
    } else {
      by.output = value * out / memory;
      by.weight = by.noise_last = value / memory;
      by.noise_first = out / memory;
      by.noise_scores = value * out / memory * scores;
    }
    return scale;
  }

 private:
  static bool moves_branches(const std::string& role) {
    static const std::vector<std::string> roles = {"all", "block", "weight", "query", "key", "value", "out", "ffn"};
    const std::string own = role.starts_with("cross_") ? role.substr(6) : role;
    return std::find(roles.begin(), roles.end(), own) != roles.end();
  }

  static const Coefficient* rule(const std::map<std::string, Coefficient>& rules, const char* role) {
    const std::string_view text = role;
    for (const char* name : {role, text.starts_with("cross_") ? role + 6 : role, "weight", "block", "all"}) {
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
    const auto [q, k, v, o] = attention(place);
    const double sharpness = q * k, value = v * v,
                 out = o * o;  // the scores of x are those of sqrt(q k) x with gains 1
    const double scores = (q * q + k * k) / (2 * sharpness * sharpness);
    if (normed) return {sharpness, 1, 1 / out, 1 / out, 1 / value, scores};
    if (values_are_normed("attention")) return {sharpness, out, 1, 1, out / value, out * scores};
    return {sharpness,         value * out / sharpness, value / sharpness,
            value / sharpness, out / sharpness,         value * out / sharpness * scores};
  }

  bool values_are_normed(const char* branch) const {
    const auto options = s_.scheme.branch_options.find(branch);
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
  double third = 0, fourth = 0;    // cross: correlation and scale of its memory
  std::uint32_t coefficients = 0;  // combine: where they begin
  std::uint32_t scale = 0;         // branch: which BranchScale
  int branch = -1;                 // index into Theory::branches
};

class Propagation {
 public:
  // `cross`: of a decoder that reads a memory.
  Propagation(const Scheme& scheme, const BranchTables& tables, const TheoryConfig& config,
              StackKind stack = StackKind::single, const EncoderDecoderTables* cross = nullptr)
      : scheme_(scheme),
        tables_(tables),
        cross_(cross),
        config_(config),
        surroundings_(theory_surroundings(scheme, config_, stack, measured_normed(tables, cross))),
        gains_(surroundings_) {
    const std::int64_t encoder_layers = config.encoder_layers == 0 ? config.layers : config.encoder_layers;
    surroundings_.encoder_depth = static_cast<double>(encoder_layers);
    surroundings_.decoder_depth = static_cast<double>(config.layers);
    if (stack == StackKind::encoder) enter_encoder(encoder_layers);
    gains_.read();
    constant_gains_ = gains_.constant();
    const auto options = scheme.branch_options.find("attention");
    carries_ = options != scheme.branch_options.end() && options->second.contains("scores");
    check();
    surroundings_.streams = theory_streams(surroundings_);
    find_formulas();
    start();
  }

  // Compiles every formula at every layer, which finds what no rule covers.
  void compile_all() {
    for (std::int64_t layer = 1; layer <= config_.layers; ++layer) {
      for (std::size_t f = 0; f < formulas_.size(); ++f) {
        enter(layer, f);
        for (const LearnedSpec* learned : profiled_) profile(*learned, f);
        const TheoryProgram& program = formulas_[f].at(place_);
        for (const Instruction& instruction : program.instructions) {
          for (const Instruction::Term& term : instruction.terms) value_of(term.coefficient, place_);
        }
        count_copies(program);
      }
    }
    if (const Formula* formula = scheme_.formula("final"))
      FormulaPrograms(*formula, "attention", surroundings_).at(place_);
  }

  void forward() {
    const auto steps = static_cast<std::size_t>(config_.layers) * formulas_.size();
    theory_.streams.reserve(steps);
    theory_.branches.reserve(3 * static_cast<std::size_t>(config_.layers));
    records_.reserve(4 * steps);
    coefficients_.reserve(2 * steps);
    begins_.reserve(steps);
    for (std::int64_t layer = 1; layer <= config_.layers; ++layer) {
      for (std::size_t f = 0; f < formulas_.size(); ++f) {
        enter(layer, f);
        begins_.push_back(records_.size());
        if (profiled_.empty()) {
          execute(formulas_[f].at(place_), layer);
        } else {
          execute_profiled(f, layer);
        }
        theory_.streams.push_back(
            {.layer = layer, .rms = std::sqrt(forward_.at(0)[kOwn]), .correlation = correlation(0), .gradient_rms = 0});
      }
    }
    closing_ = records_.size();
    if (const Formula* formula = scheme_.formula("final")) {
      start_profiled();  // its values are of its own
      final_.emplace(*formula, "attention", surroundings_);
      execute(final_->at(place_), config_.layers);
    }
    theory_.output_rms = std::sqrt(forward_.at(0)[kOwn]);
    theory_.amplification = forward_.at(0)[kChangeOwn];
  }

  void backward(const Moments& gradient) {
    gradient_.set(0, {gradient.own, gradient.shared});
    retrace(closing_, records_.size());
    for (std::size_t i = begins_.size(); i-- > 0;) {
      retrace(begins_[i], i + 1 < begins_.size() ? begins_[i + 1] : closing_);
      theory_.streams[i].gradient_rms = std::sqrt(std::max(0.0, watched_gradient()));
    }
  }

  Theory take() { return std::move(theory_); }

  Theory run() {
    forward();
    backward({1, 0});
    return take();
  }

  // Of the encoder: what the decoder reads, with its change; and of the decoder: the gradient by it.
  std::array<double, 4> output() const { return forward_.at(0); }
  void remember(const std::array<double, 4>& memory) { forward_.set(surroundings_.memory(), memory); }
  Moments memory_gradient() const {
    const Backward::Cell& cell = gradient_.at(surroundings_.memory());
    return {cell[kOwn], cell[kShared]};
  }

 private:
  // Of a token with itself and of two different tokens: the wires, and forward also their changes.
  enum Lane : std::size_t { kOwn, kShared, kChangeOwn, kChangeShared };
  using Forward = MomentMatrix<4>;
  using Backward = MomentMatrix<2>;

  static bool measured_normed(const BranchTables& tables, const EncoderDecoderTables* cross) {
    return !tables.attention_normed.empty() && !tables.ffn_normed.empty() &&
           (cross == nullptr || !cross->cross_normed.empty());
  }

  void enter_encoder(std::int64_t layers) {
    config_.layers = layers;
    config_.input = config_.source;
    for (const auto& [name, per_layer] : {std::pair{"n", 2.0}, {"N", 1.0}, {"M", 1.0}})
      surroundings_.numbers[name] = per_layer * static_cast<double>(layers);
  }

  void find_formulas() {
    const bool decoder = surroundings_.stack == StackKind::decoder;
    if (scheme_.formula("layer") != nullptr) {
      const Formula* layer = scheme_.formula(decoder ? "cross_layer" : "layer");
      if (layer == nullptr) throw no_cross_formula();
      formulas_.emplace_back(*layer, "", surroundings_);
      return;
    }
    for (const char* key : {"attention", "cross", "ffn"}) {
      if (key == std::string_view("cross") && !decoder) continue;
      const Formula* own = scheme_.formula(key);
      const Formula* formula = own != nullptr ? own : scheme_.formula("sublayer");
      if (formula == nullptr) throw no_cross_formula();
      formulas_.emplace_back(*formula, key, surroundings_);
      branches_.emplace_back(key);
    }
  }

  NotPredictedError no_cross_formula() const {
    return NotPredictedError(fmt::format("scheme '{}' has no formula for decoders with cross-attention", scheme_.name));
  }

  void enter(std::int64_t layer, std::size_t formula) {
    const Place place{.stack = surroundings_.stack};
    *layer_ = static_cast<double>(layer);
    *sublayer_ = static_cast<double>(place.sublayers_per_layer() * (layer - 1) + 1) + static_cast<double>(formula);
  }

  void check() const {
    if (config_.layers < 1) fail("a stack needs at least one layer, but {} were asked for", config_.layers);
    if (scheme_.weights.unit)
      throw NotPredictedError(
          fmt::format("scheme '{}': the theory has no rule for weights that are kept at unit length", scheme_.name));
    for (const LearnedSpec& learned : scheme_.learned) {
      if (learned.profile == nullptr) continue;
      if (scheme_.formula("layer") != nullptr || learned.per != LearnedSpec::Per::sublayer)
        throw NotPredictedError(
            fmt::format("scheme '{}': '{}' is measured on data, but not per sublayer", scheme_.name, learned.name));
    }
    if (!carries_) return;
    const auto refuse = [&](const char* what) {
      return NotPredictedError(
          fmt::format("scheme '{}': the theory has no rule for scores that are carried from layer to layer {}",
                      scheme_.name, what));
    };
    if (scheme_.branch_options.at("attention").size() > 1) throw refuse("beside other options of attention");
    if (surroundings_.stack == StackKind::decoder) throw refuse("in cross-attention");
    for (const LearnedSpec& learned : scheme_.learned) {
      if (learned.profile != nullptr) throw refuse("beside values that are profiled");
    }
  }

  // x and the streams that begin as a multiple of it, or as copies of one.
  void start() {
    place_ = {{"l", 1.0}, {"k", 1.0}};
    layer_ = &place_["l"];
    sublayer_ = &place_["k"];
    std::vector<double> factors;
    for (const TheoryStream& stream : surroundings_.streams) {
      for (int r = 0; r < stream.registers; ++r)
        factors.push_back(stream.grows ? stream.factor * stream.count : stream.factor);
      if (stream.grows) place_[count_name(stream.name)] = stream.count;
      if (stream.copies && watched_.front() == 0) {
        watched_.clear();
        for (int r = 0; r < stream.registers; ++r) watched_.push_back(stream.first + r);
      }
    }
    for (std::size_t i = 0; i < factors.size(); ++i) {
      for (std::size_t j = 0; j < factors.size(); ++j) {
        const double both = factors[i] * factors[j];
        forward_.set(static_cast<int>(i), static_cast<int>(j),
                     {both * config_.input.own, both * config_.input.shared, 0, 0});
      }
    }
    registers_ = std::max(registers_, surroundings_.stream_registers() + (cross_ != nullptr ? 1 : 0));
    for (const LearnedSpec& learned : scheme_.learned) {
      if (learned.profile != nullptr) profiled_.push_back(&learned);
    }
    start_profiled();
  }

  void start_profiled() {
    for (const LearnedSpec* learned : profiled_)
      place_[learned->name] = value_of(fold(*learned->init, surroundings_, print_expression(*learned->init)), place_);
  }

  // By x; where a scheme keeps copies of it, by a change that all of them share.
  double watched_gradient() const {
    double sum = 0;
    for (const int i : watched_) {
      for (const int j : watched_) sum += gradient_.at(i, j)[kOwn];
    }
    return sum;
  }

  const TheoryProfile& profile(const LearnedSpec& learned, std::size_t formula) {
    const auto key = std::pair{&learned, formula};
    const auto found = profiles_.find(key);
    if (found != profiles_.end()) return found->second;
    return profiles_.emplace(key, compile_profile(learned, branches_[formula], surroundings_, place_)).first->second;
  }

  // Runs a sublayer with what was found for it, after measuring on its input what the next one starts at.
  void execute_profiled(std::size_t formula, std::int64_t layer) {
    std::vector<double> next;
    const std::size_t scales = scales_.size(), coefficients = coefficients_.size();
    for (const LearnedSpec* learned : profiled_) {
      const TheoryProfile& measured = profile(*learned, formula);
      theory_.profiled.push_back({.name = learned->name, .layer = layer, .value = place_.at(learned->name)});
      registers_ = std::max(registers_, measured.program.registers);
      for (const Instruction& instruction : measured.program.instructions) {
        Record unused{.instruction = &instruction, .layer = layer};
        step(instruction, unused);
      }
      for (const auto& [name, wire] : measured.variances) place_[name] = forward_.at(wire)[kOwn];
      next.push_back(value_of(measured.next, place_));
    }
    coefficients_.resize(coefficients);
    if (!constant_gains_) scales_.resize(scales);
    execute(formulas_[formula].at(place_), layer);
    for (std::size_t i = 0; i < next.size(); ++i) place_[profiled_[i]->name] = next[i];
  }

  void count_copies(const TheoryProgram& program) {
    if (program.counts.empty()) return;
    std::vector<double> counts;
    for (const auto& [name, count] : program.counts) counts.push_back(value_of(count, place_));
    for (std::size_t i = 0; i < counts.size(); ++i) place_[program.counts[i].first] = counts[i];
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
      step(instruction, record);
      if (instruction.op == Step::branch) {
        record.branch = static_cast<int>(theory_.branches.size());
        theory_.branches.push_back({.layer = layer,
                                    .kind = instruction.branch,
                                    .rms = std::sqrt(forward_.at(instruction.to)[kOwn]),
                                    .weight_gradient = 0});
      }
      records_.push_back(record);
    }
    count_copies(program);
  }

  void step(const Instruction& instruction, Record& record) {
    switch (instruction.op) {
      case Step::combine: combine(instruction, record); break;
      case Step::stop: forward_linear(instruction, {{1.0}}); break;
      case Step::norm: norm(instruction, record); break;
      case Step::tanh: squash(instruction, record); break;
      case Step::branch:
        if (instruction.branch == BranchKind::cross) {
          cross(instruction, record);
        } else if (carries_ && instruction.branch == BranchKind::attention) {
          carried(instruction, record);
        } else {
          branch(instruction, record);
        }
        break;
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
    answer(to, response, scale, variance, change, {});
  }

  // Two sources: queries from the stream, keys and values from the memory, whose changes meet no other path.
  void cross(const Instruction& instruction, Record& record) {
    const int from = instruction.terms[0].from, memory = instruction.terms[1].from;
    const double size = forward_.at(from)[kOwn], memory_size = forward_.at(memory)[kOwn];
    if (!(memory_size > 0)) fail("scheme '{}': cross-attention reads a memory that is zero", scheme_.name);
    const CrossScale scale = gains_.cross(instruction.normed, size, memory_size, place_);
    record.scale = static_cast<std::uint32_t>(scales_.size());
    scales_.push_back(scale.query);
    record.first = scale.memory * memory_size;
    record.second = correlation(from);
    record.third = correlation(memory);
    record.fourth = scale.memory;
    const CrossResponse response = cross_table(instruction).at(record.first, record.second, record.third);
    const Moments change = spread(forward_.at(from)[kChangeOwn], forward_.at(from)[kChangeShared],
                                  response.query.change_own, response.query.change_shared);
    const Moments moved = spread(forward_.at(memory)[kChangeOwn], forward_.at(memory)[kChangeShared],
                                 response.change_own, response.change_shared);
    const double through = scale.memory * scale.query.output * kept_;
    answer(instruction.to, response.query, scale.query, record.first, change,
           {through * moved.own, through * moved.shared});
  }

  // Scores of all layers so far, each of matrices of its own: their squares add, and the sum is as sharp as the scores
  // of an input of variance `first`. So do the squares of their changes, and backward those of their gradients.
  struct CarriedScores {
    double square = 0;           // of the scores
    double own = 0, shared = 0;  // changes of what queries and keys read, as far as scores show them
    double noise = 0;            // changes of queries and keys
    Moments gradient = {};       // of layers above
  };

  void carried(const Instruction& instruction, Record& record) {
    if (instruction.normed)
      throw NotPredictedError(
          fmt::format("scheme '{}': the theory has no rule for a norm on carried scores' attention", scheme_.name));
    if (tables_.attention_split.empty())
      throw NotPredictedError(
          fmt::format("scheme '{}': branches were not measured for scores that are carried", scheme_.name));
    const int from = instruction.terms[0].from;
    const Forward::Cell& in = forward_.at(from);
    const AttentionGains gain = gains_.attention(place_);
    const double sharpness = gain.query * gain.key, size = in[kOwn], score = sharpness * sharpness * size;
    carried_.square += score * size;
    carried_.own += score * in[kChangeOwn];
    carried_.shared += score * in[kChangeShared];
    carried_.noise += size * size * (gain.query * gain.query + gain.key * gain.key) / 2;
    const double variance = std::sqrt(carried_.square), all = carried_.square;
    const double value = gain.value * gain.value, out = gain.out * gain.out;
    record.first = variance;
    record.second = correlation(from);
    record.third = score;
    record.fourth = value * out;
    record.scale = static_cast<std::uint32_t>(scales_.size());
    scales_.push_back({.input = size, .weight = value * size});
    const CrossResponse response = tables_.attention_split.at(variance, record.second, 0);
    const Moments by_scores =
        spread(carried_.own, carried_.shared, response.query.change_own, response.query.change_shared);
    const Moments by_values = spread(in[kChangeOwn], in[kChangeShared], response.change_own, response.change_shared);
    const auto change = [&](double Moments::*part) {
      const BranchResponse& r = response.query;
      return value * out * kept_ * (size / all * (by_scores.*part) + by_values.*part) +
             size * (value * (r.noise_last.*part) + out * (r.noise_first.*part) +
                     value * out * carried_.noise / all * (r.noise_scores.*part));
    };
    const double strength = value * out * size;
    forward_.isolate(instruction.to,
                     {strength * response.query.output.own, strength * response.query.output.shared,
                      change(&Moments::own), change(&Moments::shared)},
                     registers_);
  }

  void backward_carried(const Instruction& instruction, const Record& record) {
    const BranchScale& scale = scales_[record.scale];
    const CrossResponse response = tables_.attention_split.at(record.first, record.second, 0);
    const auto [total, common] = gradient_.at(instruction.to);
    const Moments weight = spread(total, common, {response.query.weight_own, 0}, {response.query.weight_shared, 0});
    theory_.branches[static_cast<std::size_t>(record.branch)].weight_gradient =
        std::sqrt(std::max(0.0, scale.weight * weight.own));
    const Moments scores = spread(total, common, response.query.gradient_own, response.query.gradient_shared);
    const double part = record.fourth * scale.input / (record.first * record.first);
    carried_.gradient.own += part * scores.own;
    carried_.gradient.shared += part * scores.shared;
    gradient_.isolate(instruction.to, {}, registers_);
    const int from = instruction.terms[0].from;
    hand_back(from, record.third * kept_, carried_.gradient);
    hand_back(from, record.fourth * kept_, spread(total, common, response.gradient_own, response.gradient_shared));
  }

  const CrossTable& cross_table(const Instruction& instruction) const {
    return instruction.normed ? cross_->cross_normed : cross_->cross;
  }

  // What a branch gives back: a fresh wire, with the change of its input, of its memory and of its own weights.
  void answer(int to, const BranchResponse& response, const BranchScale& scale, double variance, const Moments& change,
              const Moments& moved) {
    const double through = scale.input * scale.output * kept_, strength = scale.output * variance;
    const auto noise = [&](double Moments::*part) {
      return variance * (scale.noise_last * response.noise_last.*part + scale.noise_first * response.noise_first.*part +
                         scale.noise_scores * response.noise_scores.*part);
    };
    forward_.isolate(to,
                     {strength * response.output.own, strength * response.output.shared,
                      through * change.own + noise(&Moments::own) + moved.own,
                      through * change.shared + noise(&Moments::shared) + moved.shared},
                     registers_);
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
        case Step::branch:
          if (instruction.branch == BranchKind::cross) {
            backward_cross(instruction, record);
          } else if (carries_ && instruction.branch == BranchKind::attention) {
            backward_carried(instruction, record);
          } else {
            const BranchResponse response = table(instruction).at(record.first, record.second);
            backward_branch(response, record, from, to);
          }
          break;
      }
    }
  }

  void backward_linear(const Instruction& instruction, const double* factors) {
    gradient_.pull_back(instruction.to, instruction.terms, factors, registers_);
  }

  void backward_branch(const BranchResponse& response, const Record& record, int from, int to) {
    const BranchScale& scale = scales_[record.scale];
    const auto [total, common] = gradient_.at(to);
    const Moments weight = spread(total, common, {response.weight_own, 0}, {response.weight_shared, 0});
    theory_.branches[static_cast<std::size_t>(record.branch)].weight_gradient =
        std::sqrt(std::max(0.0, scale.weight * record.first * weight.own));
    gradient_.isolate(to, {}, registers_);
    hand_back(from, scale.input * scale.output * kept_,
              spread(total, common, response.gradient_own, response.gradient_shared));
  }

  // Every layer hands the memory a gradient through matrices of its own, so that squares add.
  void backward_cross(const Instruction& instruction, const Record& record) {
    const CrossResponse response = cross_table(instruction).at(record.first, record.second, record.third);
    const auto [total, common] = gradient_.at(instruction.to);
    backward_branch(response.query, record, instruction.terms[0].from, instruction.to);
    hand_back(instruction.terms[1].from, record.fourth * scales_[record.scale].output * kept_,
              spread(total, common, response.gradient_own, response.gradient_shared));
  }

  void hand_back(int from, double through, const Moments& arriving) {
    const Backward::Cell& there = gradient_.at(from);
    gradient_.set(from, {there[kOwn] + through * arriving.own, there[kShared] + through * arriving.shared});
  }

  const Scheme& scheme_;
  const BranchTables& tables_;
  const EncoderDecoderTables* cross_;
  TheoryConfig config_;
  TheorySurroundings surroundings_;
  RoleGains gains_;
  bool constant_gains_ = false;
  std::vector<FormulaPrograms> formulas_;
  std::vector<std::string> branches_;  // what f is in each
  std::optional<FormulaPrograms> final_;
  Variables place_;
  double *layer_ = nullptr, *sublayer_ = nullptr;  // of place_
  std::vector<const LearnedSpec*> profiled_;
  std::map<std::pair<const LearnedSpec*, std::size_t>, TheoryProfile> profiles_;
  std::vector<int> watched_ = {0};  // registers
  bool carries_ = false;            // scores, from layer to layer
  CarriedScores carried_ = {};
  int registers_ = 1;
  // What passes a branch has no preferred direction, so that a norm which removes the mean takes 1/d of it. Along the
  // stream itself nothing is lost: where branches are homogeneous, a gradient stays orthogonal to what was normed.
  bool centres_ = false;
  double kept_ = 1;
  Forward forward_;
  Backward gradient_;
  std::vector<Record> records_;
  std::vector<std::size_t> begins_;  // of each formula that ran, in records_
  std::size_t closing_ = 0;          // where the final formula begins
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

void check_predicted_encoder_decoder(const Scheme& scheme, const TheoryConfig& config) {
  const EncoderDecoderTables none;
  Propagation(scheme, none.encoder, config, StackKind::encoder).compile_all();
  Propagation(scheme, none.decoder, config, StackKind::decoder, &none).compile_all();
}

Theory predict(const Scheme& scheme, const BranchTables& branches, const TheoryConfig& config) {
  return Propagation(scheme, branches, config).run();
}

EncoderDecoderTheory predict(const Scheme& scheme, const EncoderDecoderTables& branches, const TheoryConfig& config) {
  Propagation encoder(scheme, branches.encoder, config, StackKind::encoder);
  Propagation decoder(scheme, branches.decoder, config, StackKind::decoder, &branches);
  encoder.forward();
  decoder.remember(encoder.output());
  decoder.forward();
  decoder.backward({1, 0});
  encoder.backward(decoder.memory_gradient());
  return {encoder.take(), decoder.take()};
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

namespace {

double ffn_gradient(const Theory& theory, bool first) {
  double found = 0;
  for (const BranchTheory& branch : theory.branches) {
    if (branch.kind != BranchTheory::Kind::ffn) continue;
    found = branch.weight_gradient;
    if (first) break;
  }
  return found;
}

// `run(depth)` gives the stack that begins and the one that ends the network.
template <typename Run>
Exponents fit(const std::vector<std::int64_t>& depths, Run run) {
  std::vector<double> n, rms, first, last, amplification;
  for (const std::int64_t depth : depths) {
    const auto [below, above] = run(depth);
    n.push_back(static_cast<double>(depth));
    rms.push_back(above.streams.back().rms);
    amplification.push_back(above.amplification);
    first.push_back(ffn_gradient(below, true));
    last.push_back(ffn_gradient(above, false));
  }
  return {.stream_rms = log_slope(n, rms),
          .last_gradient = log_slope(n, last),
          .first_gradient = log_slope(n, first),
          .amplification = log_slope(n, amplification)};
}

}  // namespace

Exponents fit_exponents(const Scheme& scheme, const BranchTables& branches, TheoryConfig config,
                        const std::vector<std::int64_t>& depths) {
  return fit(depths, [&](std::int64_t depth) {
    config.layers = depth;
    Theory theory = predict(scheme, branches, config);
    return std::pair{theory, theory};
  });
}

Exponents fit_exponents(const Scheme& scheme, const EncoderDecoderTables& branches, TheoryConfig config,
                        const std::vector<std::int64_t>& depths) {
  return fit(depths, [&](std::int64_t depth) {
    config.layers = depth;
    config.encoder_layers = 0;
    EncoderDecoderTheory both = predict(scheme, branches, config);
    return std::pair{std::move(both.encoder), std::move(both.decoder)};
  });
}

}  // namespace norma
