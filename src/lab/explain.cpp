#include "norma/lab/explain.h"

#include <algorithm>
#include <array>

#include "norma/backends/cpu.h"
#include "norma/core/error.h"
#include "norma/lab/judgement.h"
#include "norma/train/causality.h"
#include "norma/train/result.h"
#include "norma/train/step.h"

namespace norma {
namespace {

// The model that numbers are given for: as deep and wide as asked, both stacks alike.
ModelConfig model_of(const ExplainOptions& options) {
  ModelConfig config;
  config.family = options.family;
  config.layers = options.layers;
  config.width = options.width;
  config.heads = options.heads;
  config.batch = 1;
  config.scheme = options.scheme;
  if (const std::optional<std::string> unread = unread_name(*config.scheme))
    fail("the scheme '{}' does not use all that it computes; {}", config.scheme.asked(), *unread);
  config.norm = options.norm.value_or(initial_model(options.family).norm);
  for (const FamilyRow::OwnSize& size : config.family->sizes) {
    if (size.usual > 0) set_size(config, size.name, size.usual);
  }
  return config;
}

// "image_height 16, image_width 16, stages 1"
std::string sizes_in_words(const ModelConfig& config) {
  std::string words;
  for (const FamilyRow::OwnSize& size : config.family->sizes) {
    const std::int64_t own = size.name == "classes" ? config.classes : size_of(config, size.name);
    if (own > 0) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", size.name, own);
  }
  return words;
}

struct ForwardCost {
  Budget budget;
  double bytes = 0;  // of a forward pass
};

ForwardCost count(const ModelConfig& config) {
  Graph graph;
  const Model model = build_model(graph, config);
  ForwardCost counted{.budget = model_budget(graph, model)};
  graph.output("loss", model.loss);
  counted.bytes = compile(graph, cpu_backend())->cost().bytes;
  return counted;
}

ForwardCost count_at_any_depth(ModelConfig config) {
  const std::int64_t depth = config.layers;
  if (depth <= kTracedDepths.back()) return count(config);
  std::array<ForwardCost, 3> at;
  for (std::size_t i = 0; i < at.size(); ++i) {
    config.layers = kTracedDepths[i];
    at[i] = count(config);
  }
  return {continued(std::array{at[0].budget, at[1].budget, at[2].budget}, depth),
          continued(std::array{at[0].bytes, at[1].bytes, at[2].bytes}, depth)};
}

void add_costs(const ModelConfig& config, Explanation& said) {
  const ForwardCost counted = count_at_any_depth(config);
  const std::int64_t positions = config.family->positions(config);
  const std::string unit = counted_unit(config);
  const auto units = static_cast<double>(config.batch * (unit == "sample" ? 1 : positions));
  said.budget = counted.budget;
  said.cost = {unit, counted.budget.flops / units, counted.bytes / units, positions, sizes_in_words(config)};
}

StackNumbers numbers_of(const ExplainOptions& options, const Scheme& scheme, const StackSites& sites) {
  const StackConfig stack{.branches = sites.branches,
                          .layers = sites.layers,
                          .heads = options.heads,
                          .kind = sites.kind,
                          .other_layers = sites.other_layers};
  return {sites.scope, sites.kind, stack_numbers(scheme, stack, options.width, 1, 1),
          stack_numbers(scheme, stack, options.width, sites.layers, sites.sublayers())};
}

// The question that inspect() asks of networks, and thus the same number.
void add_theory(const ExplainOptions& options, Explanation& said) {
  ModelConfig model = initial_model(options.family, options.theory_width);
  model.time = options.theory_time;
  model.scheme = options.scheme;
  if (options.norm) model.norm = *options.norm;
  said.theory_model = model;
  said.theory_sizes = sizes_in_words(model);
  try {
    const ModelTheory theory(model);
    std::vector<Prediction> predictions;
    for (const std::int64_t depth : options.depths) predictions.push_back(theory.at(depth));
    said.exponents = exponents_of(predictions);
  } catch (const NotPredictedError& error) {
    said.not_predicted = error.what();
  }
  // Measuring its branches takes the square of the width; the sentence says which it was.
  ModelConfig asked = initial_model(options.family, std::min(options.width, initial_model(options.family).width));
  if (asked.width % options.heads == 0) asked.heads = options.heads;
  asked.time = options.theory_time;
  asked.scheme = options.scheme;
  asked.norm = model.norm;
  said.judgement = judge_by_theory(asked);
}

}  // namespace

std::optional<std::string> refusal(const ExplainOptions& options) {
  constexpr std::int64_t kShallow = 3;  // as many as stages of images
  try {
    ModelConfig model = model_of(options);
    model.layers = std::min(model.layers, kShallow);
    model.batch = model.family->batch > 0 ? model.family->batch : 2;  // BatchNorm is not for one
    build_training_step(model, {});
    require_causal(model, 1);
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

Explanation explain(const ExplainOptions& options) {
  Explanation said;
  const ModelConfig model = model_of(options);
  const Scheme& scheme = *model.scheme;
  try {
    add_costs(model, said);
  } catch (const NotBuiltError& error) {
    said.not_built = error.what();
  }
  for (const StackSites& stack : model.family->sites(model)) said.stacks.push_back(numbers_of(options, scheme, stack));
  add_theory(options, said);
  return said;
}

}  // namespace norma
