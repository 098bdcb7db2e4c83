#include "cli/explanation.h"

#include <algorithm>

#include <array>

#include "norma/backends/cpu.h"
#include "norma/core/error.h"
#include "norma/lab/judgement.h"

namespace norma::cli {
namespace {

// The model that numbers are given for: as deep and wide as asked, both stacks alike.
ModelConfig model_of(const SchemesOptions& options) {
  ModelConfig config;
  config.family = options.family;
  config.layers = options.layers;
  config.width = options.width;
  config.heads = options.heads;
  config.batch = 1;
  config.scheme = options.library.find(options.name);
  config.norm = norm(options.norm).kind;
  for (const FamilyRow::OwnSize& size : config.family->sizes) {
    if (size.usual > 0) set_size(config, size.name, size.usual);
  }
  return config;
}

struct Counted {
  Budget budget;
  double bytes = 0;  // of a forward pass
};

Counted count(const ModelConfig& config) {
  Graph graph;
  const Model model = build_model(graph, config);
  Counted counted{.budget = model_budget(graph, model)};
  graph.output("loss", model.loss);
  counted.bytes = compile(graph, cpu_backend())->cost().bytes;
  return counted;
}

Counted count_at_any_depth(ModelConfig config) {
  const std::int64_t depth = config.layers;
  if (depth <= kTracedDepths.back()) return count(config);
  std::array<Counted, 3> at;
  for (std::size_t i = 0; i < at.size(); ++i) {
    config.layers = kTracedDepths[i];
    at[i] = count(config);
  }
  return {continued(std::array{at[0].budget, at[1].budget, at[2].budget}, depth),
          continued(std::array{at[0].bytes, at[1].bytes, at[2].bytes}, depth)};
}

void add_costs(const ModelConfig& config, Explanation& said) {
  const Counted counted = count_at_any_depth(config);
  const double tokens = static_cast<double>(config.batch * config.family->positions(config));
  said.budget = counted.budget;
  said.cost = {counted.budget.flops / tokens, counted.bytes / tokens, config.family->positions(config)};
}

StackNumbers numbers_of(const SchemesOptions& options, const Scheme& scheme, const StackSites& sites) {
  const StackConfig stack{.branches = sites.branches,
                          .layers = sites.layers,
                          .heads = options.heads,
                          .kind = sites.kind,
                          .other_layers = sites.other_layers};
  const std::int64_t sublayers = std::ssize(sites.branches) * sites.layers;
  return {sites.scope, sites.kind, stack_numbers(scheme, stack, options.width, 1, 1),
          stack_numbers(scheme, stack, options.width, sites.layers, sublayers)};
}

// The question that norma inspect asks of networks, and thus the same number.
void add_theory(const SchemesOptions& options, const SchemeChoice& scheme, Explanation& said) {
  ModelConfig model = initial_model(options.family, options.theory_width);
  model.time = options.theory_time;
  model.scheme = scheme;
  model.norm = norm(options.norm).kind;
  try {
    const ModelTheory theory(model);
    std::vector<Prediction> predictions;
    for (const std::int64_t depth : options.depths) predictions.push_back(theory.at(depth));
    said.exponents = exponents_of(predictions);
  } catch (const NotPredictedError& error) {
    said.not_predicted = error.what();
  }
  constexpr std::int64_t kWidest = 128;  // measuring its branches takes the square of the width; the sentence says so
  ModelConfig asked = initial_model(options.family, std::min(options.width, kWidest));
  if (asked.width % options.heads == 0) asked.heads = options.heads;
  asked.time = options.theory_time;
  asked.scheme = scheme;
  asked.norm = model.norm;
  said.judgement = judge_by_theory(asked);
}

}  // namespace

std::string_view name_of(LearnedSpec::Per per) {
  constexpr std::string_view kNames[] = {"sublayer", "layer", "stack"};
  return kNames[static_cast<int>(per)];
}

std::string headline(const Scheme& scheme) {
  std::vector<std::string> keys = {"sublayer", "layer"};
  for (const BranchKind& kind : branch_kinds()) keys.push_back(kind.key);
  for (const std::string& key : keys) {
    if (const Formula* formula = scheme.formula(key)) return print_formula(*formula);
  }
  return "";
}

Explanation explanation_of(const SchemesOptions& options) {
  Explanation said;
  const ModelConfig model = model_of(options);
  const Scheme& scheme = *model.scheme;
  try {
    add_costs(model, said);
  } catch (const NotBuiltError& error) {
    said.not_built = error.what();
  }
  for (const StackSites& stack : model.family->sites(model)) said.stacks.push_back(numbers_of(options, scheme, stack));
  add_theory(options, model.scheme, said);
  return said;
}

}  // namespace norma::cli
