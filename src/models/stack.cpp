#include "norma/models/stack.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "models/learned.h"
#include "models/norm_sites.h"
#include "models/options.h"
#include "models/schedule_inputs.h"
#include "models/stack_check.h"
#include "models/stack_places.h"
#include "norma/core/error.h"
#include "norma/models/branches.h"
#include "norma/ops/dropout.h"
#include "norma/ops/elementwise.h"
#include "norma/schemes/trace.h"

namespace norma {
namespace {

using NamedWires = std::map<std::string, Wire>;
using Branch = std::function<Wire(Wire, const BranchOptions&)>;
using Fit = std::function<Wire(Wire, const Shape&)>;

// Convolutions read images, whose sizes belong to a model.
NormPositions positions_in(const StackConfig& config) {
  const auto convolves = [](const LayerBranch& branch) { return branch.kind->key == std::string_view("conv"); };
  return std::ranges::any_of(config.branches, convolves) ? NormPositions::image : NormPositions::sequence;
}

class StackBuilder {
 public:
  StackBuilder(Parameters& parameters, const Scheme& scheme, const StackConfig& config, Wire x)
      : parameters_(parameters),
        graph_(parameters.graph()),
        scheme_(scheme),
        config_(checked(scheme, config, x.shape().channels())),
        places_(scheme, config_),
        norms_(parameters, scheme, config.norm, config.statistics, config.norm_groups, positions_in(config)),
        schedules_(graph_, parameters.dtype(), schedules_of(scheme, config.kind, config.constants)) {
    numbers_ = places_.numbers(1, 1);
    rules_ = rules_of(scheme_, numbers_);
    schedules_.add(wires_, Reach::stack, numbers_);
    make_learned(LearnedSpec::Per::stack, wires_, places_.names_of_stack());
    start_streams(x);
  }

  Stack run() {
    NamedWires entered;  // what the layer before read
    std::int64_t next = 0;
    for (const std::int64_t layer : places_.order()) {
      pass_over(next, layer);
      next = std::max(next, layer + 1);
      if (config_.enter) wires_["x"] = config_.enter(layer, wires_.at("x"));
      const auto scope = graph_.scope("layers." + std::to_string(layer));
      const auto segment = graph_.segment();
      NamedWires here = wires_;
      if (config_.order && config_.order->beside == layer && !entered.empty()) {
        wires_ = std::move(entered);
        build_layer(layer + 1);
        wires_ = here;
        reuse_ = true;
      }
      build_layer(layer + 1);
      reuse_ = false;
      entered = std::move(here);
    }
    pass_over(next, config_.layers);
    if (const Formula* final = scheme_.formula("final"); final != nullptr && config_.ends) build_final(*final);
    return {wires_.at("x"), std::move(sites_), schedules_.take()};
  }

 private:
  using Reach = ScheduleInputs::Reach;

  // Of layers that are left out, what they do to the shape of the stream remains.
  void pass_over(std::int64_t from, std::int64_t to) {
    if (!config_.order) return;
    for (std::int64_t layer = from; layer < to; ++layer) {
      if (std::ranges::find(config_.order->layers, layer) != config_.order->layers.end()) continue;  // it is moved
      const auto scope = graph_.scope("layers." + std::to_string(layer));
      layer_ = layer;
      if (config_.enter) wires_["x"] = config_.enter(layer, wires_.at("x"));
      read_ = {};  // nobody calls its branch
      numbers_ = places_.numbers(layer + 1, places_.first_sublayer(layer + 1));
      rules_ = rules_of(scheme_, numbers_);
      for (const LayerBranch& branch : config_.branches) {
        if (!branch.in(layer)) continue;
        const auto inside = graph_.scope(branch.kind->scope);
        enter(branch);
        if (branch.skip != nullptr) wires_["x"] = called(branch, branch.skip, wires_.at("x"), {});
      }
    }
  }

  void start_streams(Wire x) {
    NamedWires before = wires_;
    before["x0"] = x;
    wires_["x"] = x;
    for (const NamedExpression& stream : scheme_.streams) wires_[stream.name] = traced(stream.value, before, {});
  }

  void build_layer(std::int64_t layer) {
    const std::int64_t first = places_.first_sublayer(layer);
    calls_.clear();
    layer_ = layer - 1;
    numbers_ = places_.numbers(layer, first);
    rules_ = rules_of(scheme_, numbers_);
    NamedWires in_layer = wires_;
    schedules_.add(in_layer, Reach::layer, numbers_);
    make_learned(LearnedSpec::Per::layer, in_layer, places_.names_of_layer(layer));
    if (scheme_.formula("layer") != nullptr) {
      build_whole(layer, in_layer);
      return;
    }
    std::int64_t k = first;
    for (const LayerBranch& branch : config_.branches) {
      if (branch.in(layer - 1)) build_sublayer(branch, layer, k++, in_layer);
    }
  }

  void build_whole(std::int64_t layer, NamedWires& in_layer) {
    schedules_.add(in_layer, Reach::sublayer, numbers_);
    make_learned(LearnedSpec::Per::sublayer, in_layer, places_.names_of_layer(layer));
    std::map<std::string, Branch> branches;
    for (const LayerBranch& branch : config_.branches) {
      branches[branch.kind->scope] = [this, &branch](Wire in, const BranchOptions& given) {
        const auto scope = graph_.scope(branch.kind->scope);
        return call(branch, in, given);
      };
    }
    const std::size_t first_site = sites_.size();
    trace_formula(*layer_formula(scheme_, config_), in_layer, std::move(branches));
    close_sites(first_site);
  }

  void build_sublayer(const LayerBranch& branch, std::int64_t layer, std::int64_t k, NamedWires& in_layer) {
    const auto scope = graph_.scope(branch.kind->scope);
    numbers_ = places_.numbers(layer, k);
    read_ = {};
    enter(branch);
    in_layer["x"] = wires_.at("x");
    NamedWires here = in_layer;
    schedules_.add(here, Reach::sublayer, numbers_);
    std::set<std::string> used;
    add_names(*branch_formula(scheme_, *branch.kind), numbers_, used);
    make_learned(LearnedSpec::Per::sublayer, here, used);
    const std::map<std::string, Branch> branches = {
        {"f", [this, &branch](Wire in, const BranchOptions& given) { return call(branch, in, given); }}};
    const std::size_t first_site = sites_.size();
    if (config_.profile) profile(here, branches);
    trace_formula(*branch_formula(scheme_, *branch.kind), here, branches, fit_of(branch));
    close_sites(first_site);
    for (const auto& [stream, wire] : wires_) in_layer[stream] = wire;
  }

  void enter(const LayerBranch& branch) {
    if (branch.enter != nullptr) wires_["x"] = called(branch, branch.enter, wires_.at("x"), {});
  }

  void build_final(const Formula& final) {
    const auto scope = graph_.scope("final");
    in_final_ = true;
    numbers_ = places_.numbers(config_.layers, places_.last_sublayer());
    rules_ = rules_of(scheme_, numbers_);
    NamedWires here = wires_;
    std::set<std::string> used;
    add_names(final, numbers_, used);
    for (const LearnedSpec& spec : scheme_.learned) {
      if (spec.per != LearnedSpec::Per::stack && used.contains(spec.name)) here[spec.name] = learn(spec);
    }
    trace_formula(final, here, {});
  }

  void close_sites(std::size_t first) {
    for (std::size_t i = first; i < sites_.size(); ++i) sites_[i].stream_out = wires_.at("x");
  }

  // A branch under the open scope, with dropout. Called again with the same input it is the same wire.
  Wire call(const LayerBranch& branch, Wire in, const BranchOptions& given) {
    std::string name = graph_.full_name("");
    name.pop_back();  // the dot
    if (!read_) read_ = in;
    if (reuse_) return calls_by_name_.at(name);
    const auto key = std::tuple{name, in.id(), given};
    if (const auto known = calls_.find(key); known != calls_.end()) return known->second;
    Wire out = called(branch, branch.build, in, given);
    if (config_.dropout) out = dropout(out, config_.dropout, config_.dropout_key, name);
    calls_.emplace(key, out);
    const bool first = calls_by_name_.emplace(name, out).second;
    if (first)
      sites_.push_back(
          {.name = name, .kind = branch.kind, .stream_in = wires_.at("x"), .branch = out, .stream_out = {}});
    return out;
  }

  Wire called(const LayerBranch& branch, const BranchBuilder& build, Wire in, const BranchOptions& given) {
    const BranchChoice choice(scheme_, *branch.kind, given, numbers_);
    return build({.parameters = parameters_,
                  .in = in,
                  .stack = config_,
                  .options = choice,
                  .rules = rules_,
                  .style = style(),
                  .norm = norm_maker(),
                  .carried = carried_[branch.kind->key],
                  .layer = layer_,
                  .read = read_});
  }

  // A sum of the stream and a branch that changes its shape takes the stream through the branch's skip, once.
  Fit fit_of(const LayerBranch& branch) {
    if (branch.skip == nullptr) return nullptr;
    auto known = std::make_shared<std::map<int, Wire>>();
    return [this, &branch, known, entered = wires_.at("x").shape()](Wire side, const Shape& other) {
      if (side.shape() != entered || other.rank() != entered.rank()) return side;
      Wire& skipped = (*known)[side.id()];
      if (!skipped) skipped = called(branch, branch.skip, side, {});
      return skipped;
    };
  }

  WeightStyle style() const {
    return {.start = config_.weights,
            .biases = config_.biases && scheme_.weights.biases,
            .unit = scheme_.weights.unit,
            .form = form_of_weights(scheme_, config_)};
  }

  // The wires after a formula.
  NamedWires traced(const Formula& formula, NamedWires wires, std::map<std::string, Branch> branches,
                    Fit fit = nullptr) {
    Surroundings around{.numbers = numbers_,
                        .wires = std::move(wires),
                        .branches = std::move(branches),
                        .norm = norm_maker(),
                        .fit = std::move(fit)};
    try {
      trace(formula, around);
    } catch (const FormulaError& error) {
      fail("scheme '{}': {}", scheme_.name, error.what());
    }
    return std::move(around.wires);
  }

  Wire traced(const ExpressionPtr& expression, NamedWires wires, const std::map<std::string, Branch>& branches) {
    const Formula formula{.text = print_expression(*expression), .statements = {{.target = "", .value = expression}}};
    return traced(formula, std::move(wires), branches).at("x");
  }

  // Streams outlive the formula that changed them; names assigned inside it do not.
  void trace_formula(const Formula& formula, const NamedWires& wires, std::map<std::string, Branch> branches,
                     Fit fit = nullptr) {
    const NamedWires after = traced(formula, wires, std::move(branches), std::move(fit));
    wires_["x"] = after.at("x");
    for (const NamedExpression& stream : scheme_.streams) wires_[stream.name] = after.at(stream.name);
  }

  NormMaker norm_maker() {
    return [this](std::string_view kind, std::string_view site, Wire in) {
      return norms_.apply(kind, site, in, in_final_ ? "final" : "norm", rules_.optimiser);
    };
  }

  // Those that are used here: a parameter that nothing reads would have no gradient.
  void make_learned(LearnedSpec::Per per, NamedWires& wires, const std::set<std::string>& used) {
    for (const LearnedSpec& spec : scheme_.learned) {
      if (spec.per == per && used.contains(spec.name)) wires[spec.name] = learn(spec);
    }
  }

  Wire learn(const LearnedSpec& spec) {
    return learned_value(parameters_, spec, config_.condition, {scheme_.name, numbers_, rules_});
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
      measured = traced(spec.profile, here, branches);
    }
  }

  Parameters& parameters_;
  Graph& graph_;
  const Scheme& scheme_;
  const StackConfig config_;
  const StackPlaces places_;
  NormSites norms_;
  ScheduleInputs schedules_;
  SchemeRules rules_;       // at the layer that is being built
  Variables numbers_;       // at the place that is being built
  std::int64_t layer_ = 0;  // from 0
  bool in_final_ = false;
  NamedWires wires_;  // x, streams, schedules, values learned once per stack
  NamedWires measured_;
  NamedWires carried_;  // what branches of the layer below left for those of this one, by key
  std::map<std::tuple<std::string, int, BranchOptions>, Wire> calls_;  // of branches, in this layer
  std::map<std::string, Wire> calls_by_name_;                          // the first of each branch
  Wire read_;                                                          // what the branch of this sublayer read first
  bool reuse_ = false;  // branches give what they gave at their first call
  std::vector<SublayerSite> sites_;
};

}  // namespace

Stack build_stack(Parameters& parameters, const Scheme& scheme, const StackConfig& config, Wire x) {
  return StackBuilder(parameters, scheme, config, x).run();
}

}  // namespace norma
