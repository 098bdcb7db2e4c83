#include "norma/models/stack.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "norma/core/error.h"
#include "norma/models/branches.h"
#include "norma/ops/dropout.h"
#include "norma/ops/elementwise.h"
#include "norma/schemes/evaluate.h"
#include "norma/schemes/trace.h"

namespace norma {
namespace {

// Roles whose initial values a stack without cross-attention sets; cross-attention's have nothing to apply to.
constexpr std::array<std::string_view, 10> kRoles = {"all", "block", "query",       "key",       "value",
                                                     "out", "ffn",   "cross_value", "cross_out", "cross_query"};

constexpr std::int64_t kSublayers = 2;  // of a layer without cross-attention

// Which constants depend on the step, directly or through one another.
std::set<std::string> schedules_of(const Scheme& scheme) {
  std::set<std::string> found;
  for (bool grew = true; grew;) {
    grew = false;
    for (const NamedExpression& constant : scheme.constants.common) {
      const std::vector<std::string> names = names_in(*constant.value);
      const bool depends = std::any_of(names.begin(), names.end(),
                                       [&](const std::string& name) { return name == "t" || found.contains(name); });
      if (depends && found.insert(constant.name).second) grew = true;
    }
  }
  return found;
}

// Adds constants to what is known, in whatever order they depend on one another.
void resolve(const Scheme& scheme, const std::vector<NamedExpression>& constants,
             const std::set<std::string>& schedules, Variables& known) {
  std::vector<NamedExpression> waiting;
  for (const NamedExpression& constant : constants) {
    if (!schedules.contains(constant.name)) waiting.push_back(constant);
  }
  while (!waiting.empty()) {
    const auto ready = std::find_if(waiting.begin(), waiting.end(), [&](const NamedExpression& constant) {
      const std::vector<std::string> names = names_in(*constant.value);
      return std::none_of(names.begin(), names.end(), [&](const std::string& name) {
        return std::any_of(waiting.begin(), waiting.end(),
                           [&](const NamedExpression& other) { return other.name == name; });
      });
    });
    if (ready == waiting.end())
      fail("scheme '{}': the constants '{}' and others need one another", scheme.name, waiting.front().name);
    known[ready->name] = evaluate(*ready->value, known, print_expression(*ready->value));
    waiting.erase(ready);
  }
}

class StackBuilder {
 public:
  StackBuilder(Parameters& parameters, const Scheme& scheme, const StackConfig& config, Wire x)
      : parameters_(parameters),
        graph_(parameters.graph()),
        scheme_(scheme),
        config_(config),
        width_(x.shape().channels()) {
    check_supported();
    wires_["x"] = x;
    start_streams(x);
    for (const NamedExpression& schedule : scheme.constants.common) {
      if (!schedules_of(scheme).contains(schedule.name)) continue;
      wires_[schedule.name] = graph_.input("schedule." + schedule.name, {{1}, parameters.dtype()});
      schedules_.push_back({.input = "schedule." + schedule.name,
                            .name = schedule.name,
                            .chain = {schedule},
                            .numbers = stack_numbers(scheme_, config_, width_, 1, 1)});
    }
    make_learned(LearnedSpec::Per::stack, stack_numbers(scheme_, config_, width_, 1, 1), wires_);
  }

  Stack run() {
    for (std::int64_t layer = 1; layer <= config_.layers; ++layer) {
      const auto scope = graph_.scope("layers." + std::to_string(layer - 1));
      const auto segment = graph_.segment();
      build_layer(layer);
    }
    if (const Formula* final = scheme_.formula("final")) {
      const auto scope = graph_.scope("final");
      trace_formula(*final, stack_numbers(scheme_, config_, width_, config_.layers, kSublayers * config_.layers),
                    wires_, {});
    }
    return {wires_.at("x"), std::move(sites_), std::move(schedules_)};
  }

 private:
  using Branches = std::map<std::string, std::function<Wire(Wire)>>;

  void check_supported() const {
    if (config_.layers < 1) fail("a stack needs at least one layer, but {} were asked for", config_.layers);
    const auto refuse = [&](const std::string& what) {
      throw NotBuiltError(fmt::format("scheme '{}': models do not build {} yet", scheme_.name, what));
    };
    for (const auto& [rule, entries] : scheme_.rules) {
      for (const NamedExpression& entry : entries) {
        const bool built =
            rule.starts_with("init.") && std::find(kRoles.begin(), kRoles.end(), entry.name) != kRoles.end();
        if (!built) refuse(fmt::format("the rule {}.{}", rule, entry.name));
      }
    }
    for (const LearnedSpec& learned : scheme_.learned) {
      if (learned.profile != nullptr) refuse(fmt::format("values profiled on data ('{}')", learned.name));
    }
  }

  void start_streams(Wire x) {
    for (const NamedExpression& stream : scheme_.streams) {
      Formula start{.text = print_expression(*stream.value),
                    .statements = {{.target = stream.name, .value = stream.value}}};
      Surroundings surroundings{.numbers = {}, .wires = {{"x0", x}}, .branches = {}, .norm = nullptr};
      trace(start, surroundings);
      wires_[stream.name] = surroundings.wires.at(stream.name);
    }
  }

  void build_layer(std::int64_t layer) {
    const std::int64_t first = kSublayers * (layer - 1) + 1;
    std::map<std::string, Wire> in_layer = wires_;
    make_learned(LearnedSpec::Per::layer, stack_numbers(scheme_, config_, width_, layer, first), in_layer);
    const InitRules init = init_rules(stack_numbers(scheme_, config_, width_, layer, first));
    const auto attn = [&](Wire in) {
      return attention_branch(parameters_, in,
                              {.heads = config_.heads,
                               .mask = config_.mask,
                               .init = init,
                               .extras = attention_extras(),
                               .norm = norm_maker()});
    };
    const auto ffn = [&](Wire in) {
      const std::int64_t hidden = config_.hidden == 0 ? 4 * width_ : config_.hidden;
      return feed_forward_branch(parameters_, in,
                                 {.hidden = hidden,
                                  .activation = config_.activation,
                                  .init = init,
                                  .inner_norm = branch_option("ffn", "inner"),
                                  .norm = norm_maker()});
    };
    if (const Formula* whole = scheme_.formula("layer")) {
      const Variables numbers = stack_numbers(scheme_, config_, width_, layer, first);
      make_learned(LearnedSpec::Per::sublayer, numbers, in_layer);
      const std::size_t first_site = sites_.size();
      trace_formula(*whole, numbers, in_layer, {{"attn", scoped("attn", attn)}, {"ffn", scoped("ffn", ffn)}});
      for (std::size_t i = first_site; i < sites_.size(); ++i) sites_[i].stream_out = wires_.at("x");
      return;
    }
    build_sublayer("attention", "attn", attn, layer, first, in_layer);
    build_sublayer("ffn", "ffn", ffn, layer, first + 1, in_layer);
  }

  void build_sublayer(const char* key, const char* scope_name, const std::function<Wire(Wire)>& branch,
                      std::int64_t layer, std::int64_t k, std::map<std::string, Wire>& in_layer) {
    const auto scope = graph_.scope(scope_name);
    const Formula* formula = scheme_.formula(key) != nullptr ? scheme_.formula(key) : scheme_.formula("sublayer");
    const Variables numbers = stack_numbers(scheme_, config_, width_, layer, k);
    std::map<std::string, Wire> here = in_layer;
    make_learned(LearnedSpec::Per::sublayer, numbers, here);
    const std::size_t first_site = sites_.size();
    trace_formula(*formula, numbers, here, {{"f", [&](Wire in) { return recorded(branch(in)); }}});
    for (std::size_t i = first_site; i < sites_.size(); ++i) sites_[i].stream_out = wires_.at("x");
    for (const auto& [stream, wire] : wires_) in_layer[stream] = wire;
  }

  std::function<Wire(Wire)> scoped(std::string name, std::function<Wire(Wire)> branch) {
    return [this, name = std::move(name), branch = std::move(branch)](Wire in) {
      const auto scope = graph_.scope(name);
      return recorded(branch(in));
    };
  }

  // A branch's output after dropout; the first call of a branch in a formula is its site.
  Wire recorded(Wire out) {
    std::string name = graph_.full_name("");
    name.pop_back();  // the dot
    if (config_.dropout) out = dropout(out, config_.dropout, config_.dropout_key, name);
    const bool known =
        std::any_of(sites_.begin(), sites_.end(), [&](const SublayerSite& site) { return site.name == name; });
    if (!known) sites_.push_back({.name = name, .stream_in = wires_.at("x"), .branch = out, .stream_out = {}});
    return out;
  }

  // Streams outlive the formula that changed them; names assigned inside it do not.
  void trace_formula(const Formula& formula, const Variables& numbers, const std::map<std::string, Wire>& wires,
                     Branches branches) {
    Surroundings surroundings{.numbers = numbers, .wires = wires, .branches = std::move(branches), .norm = nullptr};
    surroundings.norm = norm_maker();
    try {
      trace(formula, surroundings);
    } catch (const FormulaError& error) {
      fail("scheme '{}': {}", scheme_.name, error.what());
    }
    wires_["x"] = surroundings.wires.at("x");
    for (const NamedExpression& stream : scheme_.streams) wires_[stream.name] = surroundings.wires.at(stream.name);
  }

  InitRules init_rules(const Variables& numbers) const {
    InitRules rules;
    for (const auto& [rule, entries] : scheme_.rules) {
      auto& target = rule == "init.gain" ? rules.gain : rules.deviation;
      for (const NamedExpression& entry : entries)
        target[entry.name] = evaluate(*entry.value, numbers, print_expression(*entry.value));
    }
    return rules;
  }

  NormMaker norm_maker() {
    return [this](std::string_view kind, std::string_view site, Wire in) {
      if (!is_norm_name(kind))
        fail("scheme '{}': '{}' is not a norm; expected norm, layernorm, rmsnorm, ...", scheme_.name, kind);
      const auto scope = graph_.scope(site);
      const NormInfo& info = kind == "norm" ? norm(config_.norm) : norm(kind.substr(0, kind.size() - 4));
      return apply_norm(info, in, make_norm(info, in.shape().channels()));
    };
  }

  NormWires make_norm(const NormInfo& info, std::int64_t width) {
    NormWires wires;
    for (const NormTensor& tensor : info.parameters) {
      // "1 + w": what is stored, decayed and initialised is the distance from one.
      const bool from_one = scheme_.norm_gain == "1 + w" && tensor.name == "gain";
      const double start = tensor.initial_value(width) - (from_one ? 1 : 0);
      const Wire stored = parameters_.share(
          tensor.shape(width), {.name = std::string(tensor.name), .init = Init::constant(start), .role = "norm"});
      wires.at(tensor.name) = from_one ? stored + 1.0 : stored;
    }
    return wires;
  }

  std::string branch_option(const std::string& branch, const std::string& option) const {
    const auto options = scheme_.branch_options.find(branch);
    if (options == scheme_.branch_options.end()) return "";
    const auto found = options->second.find(option);
    return found == options->second.end() ? "" : found->second;
  }

  // One of a few words, or nothing.
  void check_option(const std::string& option, const std::string& word,
                    std::initializer_list<std::string_view> expected) const {
    if (word.empty() || std::find(expected.begin(), expected.end(), word) != expected.end()) return;
    fail("scheme '{}': branch.attention.{} is '{}'; expected {}", scheme_.name, option, word,
         fmt::join(expected, " or "));
  }

  AttentionExtras attention_extras() {
    const auto option = [&](const char* name) { return branch_option("attention", name); };
    check_option("width", option("width"), {"head", "full"});
    check_option("scores", option("scores"), {"carry"});
    check_option("head_gain", option("head_gain"), {"projected"});
    AttentionExtras extras{.q_norm = option("q"), .k_norm = option("k"), .v_norm = option("v")};
    extras.norm_width = option("width") == "full" ? AttentionExtras::Width::full : AttentionExtras::Width::head;
    extras.inner_norm = option("inner");
    extras.head_gain = !option("head_gain").empty();
    extras.carried_scores = option("scores").empty() ? nullptr : &scores_;
    return extras;
  }

  void make_learned(LearnedSpec::Per per, const Variables& numbers, std::map<std::string, Wire>& wires) {
    for (const LearnedSpec& spec : scheme_.learned) {
      if (spec.per != per) continue;
      const double start = evaluate(*spec.init, numbers, print_expression(*spec.init));
      const Shape shape = spec.extent == LearnedSpec::Extent::one ? Shape{1} : Shape{width_};
      const double lr = spec.lr == nullptr ? 1 : evaluate(*spec.lr, numbers, print_expression(*spec.lr));
      wires[spec.name] = parameters_.make(shape, {.name = spec.name,
                                                  .init = Init::constant(start),
                                                  .lr = lr,
                                                  .decay = spec.decay ? 1.0 : 0.0,
                                                  .role = "learned"});
    }
  }

  Parameters& parameters_;
  Graph& graph_;
  const Scheme& scheme_;
  const StackConfig& config_;
  std::int64_t width_;
  std::vector<SublayerSite> sites_;
  std::vector<Schedule> schedules_;
  Wire scores_;                        // of the layer below, where the scheme carries them
  std::map<std::string, Wire> wires_;  // x, streams, schedules, values learned once per stack
};

}  // namespace

Variables stack_numbers(const Scheme& scheme, const StackConfig& config, std::int64_t width, std::int64_t l,
                        std::int64_t k) {
  const double layers = static_cast<double>(config.layers);
  Variables known = {{"l", static_cast<double>(l)},
                     {"k", static_cast<double>(k)},
                     {"n", static_cast<double>(kSublayers) * layers},
                     {"N", layers},
                     {"M", layers},
                     {"d", static_cast<double>(width)},
                     {"heads", static_cast<double>(config.heads)}};
  resolve(scheme, scheme.constants.common, schedules_of(scheme), known);
  return known;
}

Stack build_stack(Parameters& parameters, const Scheme& scheme, const StackConfig& config, Wire x) {
  return StackBuilder(parameters, scheme, config, x).run();
}

}  // namespace norma
