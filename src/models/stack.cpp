#include "norma/models/stack.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "models/learned.h"
#include "models/options.h"
#include "norma/core/error.h"
#include "norma/models/branches.h"
#include "norma/norms/row.h"
#include "norma/ops/dropout.h"
#include "norma/ops/elementwise.h"
#include "norma/schemes/trace.h"

namespace norma {
namespace {

using NamedWires = std::map<std::string, Wire>;
using Branch = std::function<Wire(Wire, const BranchOptions&)>;

// A branch of a layer: its key in a scheme, and the scope its weights live in.
struct Kind {
  const char* key;
  const char* scope;
};
constexpr Kind kAttention{"attention", "attn"}, kCross{"cross", "cross"}, kFeedForward{"ffn", "ffn"};

class StackBuilder {
 public:
  StackBuilder(Parameters& parameters, const Scheme& scheme, const StackConfig& config, Wire x)
      : parameters_(parameters),
        graph_(parameters.graph()),
        scheme_(scheme),
        config_(config),
        width_(x.shape().channels()) {
    check();
    rules_ = rules_of(scheme_, numbers(1, 1));
    wires_["x"] = x;
    start_streams(x);
    schedules_in(wires_, 1, 1, Reach::stack);
    make_learned(LearnedSpec::Per::stack, numbers(1, 1), wires_);
  }

  Stack run() {
    for (std::int64_t layer = 1; layer <= config_.layers; ++layer) {
      const auto scope = graph_.scope("layers." + std::to_string(layer - 1));
      const auto segment = graph_.segment();
      build_layer(layer);
    }
    if (const Formula* final = scheme_.formula("final")) build_final(*final);
    return {wires_.at("x"), std::move(sites_), std::move(schedules_)};
  }

 private:
  enum class Reach { stack, layer, sublayer };  // of a schedule: what its value depends on

  Variables numbers(std::int64_t l, std::int64_t k) const { return stack_numbers(scheme_, config_, width_, l, k); }
  std::int64_t sublayers() const { return config_.kind == StackKind::decoder ? 3 : 2; }

  void check() const {
    if (config_.layers < 1) fail("a stack needs at least one layer, but {} were asked for", config_.layers);
    NORMA_ASSERT((config_.kind == StackKind::decoder) == static_cast<bool>(config_.memory));
    const bool whole = scheme_.formula("layer") != nullptr;
    for (const LearnedSpec& learned : scheme_.learned) {
      if (learned.profile == nullptr || (!whole && learned.per == LearnedSpec::Per::sublayer)) continue;
      throw NotBuiltError(fmt::format("scheme '{}': only values learned per sublayer can be profiled, not '{}'",
                                      scheme_.name, learned.name));
    }
    if (config_.kind != StackKind::decoder) return;
    const char* needed = whole ? "cross_layer" : "cross";
    if (scheme_.formula(needed) == nullptr && (whole || scheme_.formula("sublayer") == nullptr))
      throw NotBuiltError(
          fmt::format("scheme '{}' has no formula for decoders with cross-attention; give {}", scheme_.name, needed));
  }

  void start_streams(Wire x) {
    for (const NamedExpression& stream : scheme_.streams) {
      Formula start{.text = print_expression(*stream.value),
                    .statements = {{.target = stream.name, .value = stream.value}}};
      Surroundings around{.numbers = numbers(1, 1), .wires = {{"x0", x}}, .branches = {}, .norm = nullptr};
      trace(start, around);
      wires_[stream.name] = around.wires.at(stream.name);
    }
  }

  // Adds the schedules whose value depends on just this much of the place. The two stacks of an encoder-decoder share
  // one where nothing tells them apart.
  void schedules_in(NamedWires& wires, std::int64_t l, std::int64_t k, Reach reach) {
    for (const StepSchedule& schedule : schedules_of(scheme_, config_.kind, config_.constants)) {
      const std::set<std::string>& names = schedule.names;
      const Reach own = names.contains("k") ? Reach::sublayer : names.contains("l") ? Reach::layer : Reach::stack;
      if (own != reach) continue;
      const bool shared = reach == Reach::stack && !names.contains("n") && !names.contains("N") && !names.contains("M");
      const std::string here = graph_.full_name("");
      const std::string input = "schedule." + (shared ? "" : here) + schedule.name;
      Wire wire = graph_.find(input);
      if (!wire) {
        const auto root = graph_.scope_at("");
        wire = graph_.input(input, {{1}, parameters_.dtype()});
        schedules_.push_back(
            {.input = input, .name = schedule.name, .chain = schedule.chain, .numbers = numbers(l, k)});
      }
      wires[schedule.name] = wire;
    }
  }

  void build_layer(std::int64_t layer) {
    const std::int64_t first = sublayers() * (layer - 1) + 1;
    calls_.clear();
    numbers_ = numbers(layer, first);
    rules_ = rules_of(scheme_, numbers_);
    NamedWires in_layer = wires_;
    schedules_in(in_layer, layer, first, Reach::layer);
    make_learned(LearnedSpec::Per::layer, numbers_, in_layer);
    if (scheme_.formula("layer") != nullptr) {
      build_whole(layer, first, in_layer);
      return;
    }
    std::int64_t k = first;
    build_sublayer(kAttention, layer, k++, in_layer);
    if (config_.memory) build_sublayer(kCross, layer, k++, in_layer);
    build_sublayer(kFeedForward, layer, k, in_layer);
  }

  void build_whole(std::int64_t layer, std::int64_t first, NamedWires& in_layer) {
    schedules_in(in_layer, layer, first, Reach::sublayer);
    make_learned(LearnedSpec::Per::sublayer, numbers_, in_layer);
    std::map<std::string, Branch> branches;
    for (const Kind& kind : {kAttention, kCross, kFeedForward}) {
      if (kind.key == kCross.key && !config_.memory) continue;
      branches[kind.scope] = [this, kind](Wire in, const BranchOptions& given) {
        const auto scope = graph_.scope(kind.scope);
        return call(kind, in, given);
      };
    }
    const std::size_t first_site = sites_.size();
    trace_formula(*scheme_.formula(config_.memory ? "cross_layer" : "layer"), numbers_, in_layer, std::move(branches));
    close_sites(first_site);
  }

  void build_sublayer(const Kind& kind, std::int64_t layer, std::int64_t k, NamedWires& in_layer) {
    const auto scope = graph_.scope(kind.scope);
    const Formula* own = scheme_.formula(kind.key);
    const Formula* formula = own != nullptr ? own : scheme_.formula("sublayer");
    numbers_ = numbers(layer, k);
    NamedWires here = in_layer;
    schedules_in(here, layer, k, Reach::sublayer);
    make_learned(LearnedSpec::Per::sublayer, numbers_, here);
    const std::map<std::string, Branch> branches = {
        {"f", [this, kind](Wire in, const BranchOptions& given) { return call(kind, in, given); }}};
    const std::size_t first_site = sites_.size();
    if (config_.profile) profile(here, branches);
    trace_formula(*formula, numbers_, here, branches);
    close_sites(first_site);
    for (const auto& [stream, wire] : wires_) in_layer[stream] = wire;
  }

  void build_final(const Formula& final) {
    const auto scope = graph_.scope("final");
    in_final_ = true;
    numbers_ = numbers(config_.layers, sublayers() * config_.layers);
    rules_ = rules_of(scheme_, numbers_);
    NamedWires here = wires_;
    std::set<std::string> used;
    for (const Statement& statement : final.statements) {
      for (const std::string& name : names_in(*statement.value)) used.insert(name);
    }
    for (const LearnedSpec& spec : scheme_.learned) {
      if (spec.per != LearnedSpec::Per::stack && used.contains(spec.name)) here[spec.name] = learn(spec, numbers_);
    }
    trace_formula(final, numbers_, here, {});
  }

  void close_sites(std::size_t first) {
    for (std::size_t i = first; i < sites_.size(); ++i) sites_[i].stream_out = wires_.at("x");
  }

  // A branch under the open scope, with dropout. Called again with the same input it is the same wire.
  Wire call(const Kind& kind, Wire in, const BranchOptions& given) {
    std::string name = graph_.full_name("");
    name.pop_back();  // the dot
    const auto key = std::tuple{name, in.id(), given};
    if (const auto known = calls_.find(key); known != calls_.end()) return known->second;
    const BranchChoice choice(scheme_, kind.key, given, numbers_);
    Wire out = kind.key == kFeedForward.key ? feed_forward(choice, in) : attention(choice, kind, in);
    if (config_.dropout) out = dropout(out, config_.dropout, config_.dropout_key, name);
    if (sites_.empty() || sites_.back().name != name) {
      const bool first =
          std::none_of(sites_.begin(), sites_.end(), [&](const auto& site) { return site.name == name; });
      if (first) sites_.push_back({.name = name, .stream_in = wires_.at("x"), .branch = out, .stream_out = {}});
    }
    calls_.emplace(key, out);
    return out;
  }

  WeightStyle style() const {
    return {.start = config_.weights, .biases = config_.biases && scheme_.weights.biases, .unit = scheme_.weights.unit};
  }

  Wire attention(const BranchChoice& choice, const Kind& kind, Wire in) {
    const bool cross = kind.key == kCross.key;
    return attention_branch(parameters_, in,
                            {.heads = config_.heads,
                             .mask = cross ? Mask::full : config_.mask,
                             .init = rules_.init,
                             .extras = choice.attention(config_.qk_norm, cross ? cross_scores_ : scores_),
                             .norm = norm_maker(),
                             .kv_heads = config_.kv_heads,
                             .rope = config_.rope,
                             .lengths = cross ? config_.memory_lengths : config_.lengths,
                             .memory = cross ? config_.memory : Wire(),
                             .optimiser = rules_.optimiser,
                             .style = style()});
  }

  Wire feed_forward(const BranchChoice& choice, Wire in) {
    return feed_forward_branch(parameters_, in,
                               {.hidden = config_.hidden == 0 ? 4 * width_ : config_.hidden,
                                .activation = config_.activation,
                                .init = rules_.init,
                                .inner_norm = choice.text("inner"),
                                .norm = norm_maker(),
                                .gated = config_.gated,
                                .gain = choice.gain("gain", "gain_stored"),
                                .optimiser = rules_.optimiser,
                                .style = style()});
  }

  // Streams outlive the formula that changed them; names assigned inside it do not.
  void trace_formula(const Formula& formula, const Variables& at, const NamedWires& wires,
                     std::map<std::string, Branch> branches) {
    Surroundings around{.numbers = at, .wires = wires, .branches = std::move(branches), .norm = norm_maker()};
    try {
      trace(formula, around);
    } catch (const FormulaError& error) {
      fail("scheme '{}': {}", scheme_.name, error.what());
    }
    wires_["x"] = around.wires.at("x");
    for (const NamedExpression& stream : scheme_.streams) wires_[stream.name] = around.wires.at(stream.name);
  }

  NormMaker norm_maker() {
    return [this](std::string_view kind, std::string_view site, Wire in) {
      if (kind == "unit") return scale_norm(in, {}, 1e-12);
      const auto scope = graph_.scope(site);
      const NormInfo& info = norm_called(kind, config_.norm);
      return apply_norm(info, in, make_norm(info, in.shape().channels()));
    };
  }

  NormWires make_norm(const NormInfo& info, std::int64_t width) {
    NormWires wires;
    for (const NormTensor& tensor : info.parameters) {
      // "1 + w": what is stored, decayed and initialised is the distance from one.
      const bool from_one = scheme_.norm_gain == "1 + w" && tensor.name == "gain";
      const double start = tensor.initial_value(width) - (from_one ? 1 : 0);
      ParameterSpec spec{.name = std::string(tensor.name), .init = Init::constant(start), .role = "norm"};
      rules_.optimiser.apply(in_final_ ? "final" : "norm", spec);
      const Wire stored = parameters_.share(tensor.shape(width), spec);
      wires.at(tensor.name) = from_one ? stored + 1.0 : stored;
    }
    return wires;
  }

  void make_learned(LearnedSpec::Per per, const Variables& at, NamedWires& wires) {
    for (const LearnedSpec& spec : scheme_.learned) {
      if (spec.per == per) wires[spec.name] = learn(spec, at);
    }
  }

  Wire learn(const LearnedSpec& spec, const Variables& at) {
    LearnedStart start = start_of(spec, at, scheme_.name);
    rules_.optimiser.apply("learned", start.spec);
    const Wire wire = parameters_.make(start.shape, std::move(start.spec));
    return start.factor == 1 ? wire : wire * start.factor;
  }

  // Puts what was measured so far in the place of profiled values, and measures the next.
  void profile(NamedWires& here, const std::map<std::string, Branch>& branches) {
    for (const LearnedSpec& spec : scheme_.learned) {
      if (spec.profile == nullptr) continue;
      const double start = evaluate(*spec.init, numbers_, print_expression(*spec.init));
      Wire& measured = measured_[spec.name];
      if (!measured) measured = graph_.fill({{1}, parameters_.dtype()}, start);
      {
        const std::string name = graph_.full_name(spec.name);
        const auto root = graph_.scope_at("");
        graph_.output("profile." + name, measured * 1.0);
      }
      here[spec.name] = measured;
      const Formula next{.text = print_expression(*spec.profile),
                         .statements = {{.target = "next profile", .value = spec.profile}}};
      Surroundings around{.numbers = numbers_, .wires = here, .branches = branches, .norm = norm_maker()};
      trace(next, around);
      measured = around.wires.at("next profile");
    }
  }

  Parameters& parameters_;
  Graph& graph_;
  const Scheme& scheme_;
  const StackConfig& config_;
  std::int64_t width_;
  SchemeRules rules_;  // at the layer that is being built
  Variables numbers_;  // at the place that is being built
  bool in_final_ = false;
  NamedWires wires_;  // x, streams, schedules, values learned once per stack
  NamedWires measured_;
  Wire scores_, cross_scores_;  // of the layer below, where the scheme carries them
  std::map<std::tuple<std::string, int, BranchOptions>, Wire> calls_;  // of branches, in this layer
  std::vector<SublayerSite> sites_;
  std::vector<Schedule> schedules_;
};

}  // namespace

Variables stack_numbers(const Scheme& scheme, const StackConfig& config, std::int64_t width, std::int64_t l,
                        std::int64_t k) {
  const Place place{.stack = config.kind,
                    .layers = config.layers,
                    .other_layers = config.other_layers,
                    .width = width,
                    .heads = config.heads,
                    .layer = l,
                    .sublayer = k};
  return numbers_at(scheme, place, config.constants);
}

Stack build_stack(Parameters& parameters, const Scheme& scheme, const StackConfig& config, Wire x) {
  return StackBuilder(parameters, scheme, config, x).run();
}

}  // namespace norma
