#include "norma/train/step.h"

#include <algorithm>
#include <set>

#include "norma/backends/cpu.h"
#include "norma/models/gradients.h"
#include "norma/ops/attention.h"
#include "norma/ops/attention_probe.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/gradient_norm.h"
#include "norma/ops/scaled_add.h"
#include "norma/ops/statistics.h"

namespace norma {
namespace {

class StepBuilder {
 public:
  StepBuilder(const ModelConfig& config, const StepOptions& options) : config_(config), options_(options) {}

  TrainingStep build() {
    const Model model = build_model(graph_, config_, {.purpose = Purpose::train});
    const std::size_t forward_nodes = graph_.nodes().size();
    step_.parameters = model.parameters;
    step_.kept = model.kept;
    apply_groups(options_.groups, options_.decay_vectors, step_.parameters);
    step_.schedules = model.schedules;
    Wires parameters;
    for (const ParameterSpec& spec : model.parameters) parameters.push_back(graph_.find(spec.name));
    if (options_.probes) probe(model, forward_nodes);
    update(model, parameters, gather(parameters, differentiate_model(config_, objective(model.loss), parameters)));
    graph_.output("loss", model.loss);
    step_.plan =
        compile(std::move(graph_), options_.backend == nullptr ? cpu_backend() : *options_.backend, compile_options());
    return std::move(step_);
  }

 private:
  CompileOptions compile_options() const {
    CompileOptions options{
        .recompute_every = options_.recompute_every, .keep = options_.keep, .narrow = options_.narrow};
    if (!options_.fuse) options.rewrites.emplace();
    return options;
  }

  Wire objective(Wire loss) const {
    return options_.accumulate == 1 ? loss : loss * (1.0 / static_cast<double>(options_.accumulate));
  }

  Wires gather(const Wires& parameters, Wires gradients) {
    if (options_.accumulate == 1) return gradients;
    const Wire first = graph_.input("first", {{1}, config_.dtype});
    for (std::size_t i = 0; i < gradients.size(); ++i)
      gradients[i] = accumulate_gradient(gradients[i], first, parameters[i].name());
    return gradients;
  }

  void update(const Model& model, const Wires& parameters, const Wires& gradients) {
    const Wire control = graph_.input("control", {{OptimiserControl::size}, config_.dtype});
    const GradientNorm norm = gradient_norm(gradients, graph_.input("clip", {{1}, config_.dtype}));
    graph_.output("gradient_norm", norm.norm);
    // NaN where the loss is not finite: its gradients may be. Zero changes no bit of the others.
    const Wire scale = model.loss * 0.0 + norm.scale;
    std::vector<OptimiserGroup> groups;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const ParameterSpec& spec = step_.parameters[i];
      groups.push_back(optimiser_group(options_.optimiser, spec.lr, spec.eps, spec.decay));
      groups.back().unit = spec.unit;
      step_.places.push_back({layer_of(spec.name), static_cast<double>(parameters[i].shape().elements())});
    }
    const Wire changes =
        optimise(kind_of(options_.optimiser.name), parameters, gradients, control, scale, std::move(groups));
    if (options_.ema) follow(parameters, changes);
    step_.squares_wire = norm.squares.name();
    if (!options_.probes) return;
    graph_.output(TrainingStep::kGradientSquares, norm.squares);
    graph_.output(TrainingStep::kUpdateSquares, changes);
  }

  // mean <- (1 - take) mean + take p, with p as the optimiser leaves it: the first outputs of the node that `changes`
  // is the last of.
  void follow(const Wires& parameters, Wire changes) {
    const std::vector<int> updated = graph_.node(graph_.value(changes.id()).producer).outputs;
    const auto root = graph_.scope_at("");
    const Wire take = graph_.input("ema_take", {{1}, config_.dtype});
    const Wire keep = 1.0 - take, always = graph_.fill({{1}, config_.dtype}, 1);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Wire mean = graph_.state(ema_name(parameters[i].name()), parameters[i].type());
      const Wire next = scaled_add(mean, keep, Wire(&graph_, updated[i]), take);
      graph_.apply(std::make_shared<Accumulate>(), Wires{mean, next, always});
    }
  }

  void probe(const Model& model, std::size_t forward_nodes) {
    const auto root = graph_.scope_at("");
    for (const SublayerSite& site : model.sites) {
      watch(ProbeSite::Kind::branch, "probe.branch.", site.name, site.branch);
      watch(ProbeSite::Kind::stream, "probe.stream.", site.name, site.stream_out);
    }
    for (std::size_t index = 0; index < forward_nodes; ++index) probe_attention(static_cast<int>(index));
  }

  void watch(ProbeSite::Kind kind, const std::string& prefix, const std::string& site, Wire x) {
    graph_.watch(prefix + site, statistics(x));
    step_.probes.push_back({kind, site, prefix + site, x.shape().elements()});
  }

  void probe_attention(int index) {
    const auto* attention = dynamic_cast<const Attention*>(graph_.node(index).op.get());
    if (attention == nullptr) return;
    Wires in;
    for (const int id : graph_.node(index).inputs) in.push_back(Wire(&graph_, id));
    const std::string site = graph_.node(index).scope, output = "probe.attention." + site;
    if (!probed_.insert(site).second) return;  // a formula that calls its branch twice is watched at the first call
    const Wire watched = attention_probe(*attention, in);
    graph_.watch(output, watched);
    step_.probes.push_back({ProbeSite::Kind::attention, site, output, watched.shape()[0]});
  }

  const ModelConfig& config_;
  const StepOptions& options_;
  Graph graph_;
  TrainingStep step_;
  std::set<std::string> probed_;
};

}  // namespace

std::vector<std::pair<std::string_view, double>> read_probe(const ProbeSite& probe,
                                                            const std::function<double(std::size_t)>& output) {
  if (probe.kind == ProbeSite::Kind::attention) {
    const AttentionSummary found = read_attention_probe(static_cast<std::size_t>(probe.watched), output);
    return {{"logit_max", found.logit_max}, {"entropy", found.entropy}};
  }
  const Statistics found = read_statistics(probe.watched, output);
  if (probe.kind == ProbeSite::Kind::branch) return {{"branch_rms", found.rms}};
  return {{"stream_rms", found.rms}, {"stream_max", found.max_abs}};
}

std::string ema_name(std::string_view parameter) { return std::string(parameter) + "/ema"; }

double ema_share(double decay, std::int64_t step) {
  const double t = static_cast<double>(step);
  return 1 - std::min(decay, (1 + t) / (10 + t));
}

std::string_view stack_of(std::string_view name) { return name.substr(0, name.find("layers.")); }

std::string layer_of(std::string_view name) {
  const std::size_t layers = name.find("layers.");
  if (layers == std::string_view::npos) {
    const std::size_t stack = name.starts_with("encoder.") || name.starts_with("decoder.") ? name.find('.') + 1 : 0;
    return std::string(name.substr(0, name.find('.', stack)));
  }
  return std::string(name.substr(0, name.find('.', layers + std::string_view("layers.").size())));
}

TrainingStep build_training_step(const ModelConfig& config, const StepOptions& options) {
  return StepBuilder(config, options).build();
}

EvaluationStep build_evaluation_step(const ModelConfig& config, bool logits, const Backend* on, bool narrow) {
  Graph graph;
  const Model model = build_model(graph, config, {.logits = logits, .purpose = Purpose::evaluate});
  graph.output("loss", model.loss);
  if (logits) graph.output("logits", model.logits);
  return {compile(graph, on == nullptr ? cpu_backend() : *on, {.narrow = narrow}), model.parameters};
}

}  // namespace norma
