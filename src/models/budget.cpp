#include "norma/models/budget.h"

#include <cmath>
#include <set>

namespace norma {
namespace {

Budget count(Graph& graph, const std::vector<ParameterSpec>& specs) {
  Budget budget;
  std::set<std::string> norms;
  for (const ParameterSpec& spec : specs) {
    const std::int64_t elements = graph.find(spec.name).shape().elements();
    budget.parameters += elements;
    budget.by_role[spec.role] += elements;
    const bool outside = spec.name.starts_with("embedding.") || spec.name.starts_with("head.");
    if (!outside) budget.stack_parameters += elements;
    if (spec.role != "norm") continue;
    budget.norm_parameters += elements;
    norms.insert(spec.name.substr(0, spec.name.rfind('.')));  // "layers.3.attn.norm1"
  }
  budget.norm_instances = static_cast<std::int64_t>(norms.size());
  return budget;
}

}  // namespace

Budget stack_budget(const Scheme& scheme, const StackConfig& config, std::int64_t width) {
  Graph graph;
  Parameters parameters(graph, DType::f32);
  build_stack(parameters, scheme, config, graph.input("x", {{1, 1, width}, DType::f32}));
  return count(graph, parameters.specs());
}

Budget model_budget(const ModelConfig& config) {
  Graph graph;
  return model_budget(graph, build_model(graph, config));
}

Budget model_budget(Graph& graph, const Model& model) {
  Budget budget = count(graph, model.parameters);
  budget.flops = traced_flops(graph, model.loss);
  return budget;
}

double continued(const std::array<double, 3>& at, std::int64_t depth) {
  const auto first = static_cast<double>(kTracedDepths[0]), second = static_cast<double>(kTracedDepths[1]),
             third = static_cast<double>(kTracedDepths[2]), n = static_cast<double>(depth);
  const double slope = (at[2] - at[1]) / (third - second);
  const double bend = (slope - (at[1] - at[0]) / (second - first)) / (third - first);
  return at[2] + (n - third) * (slope + bend * (n - second));
}

Budget continued(const std::array<Budget, 3>& at, std::int64_t depth) {
  const auto whole = [&](auto count) {
    const std::array<double, 3> values = {static_cast<double>(count(at[0])), static_cast<double>(count(at[1])),
                                          static_cast<double>(count(at[2]))};
    return static_cast<std::int64_t>(std::llround(continued(values, depth)));
  };
  Budget budget{.norm_instances = whole([](const Budget& b) { return b.norm_instances; }),
                .norm_parameters = whole([](const Budget& b) { return b.norm_parameters; }),
                .stack_parameters = whole([](const Budget& b) { return b.stack_parameters; }),
                .parameters = whole([](const Budget& b) { return b.parameters; })};
  for (const auto& entry : at[2].by_role) {
    budget.by_role[entry.first] = whole([&](const Budget& b) {
      const auto found = b.by_role.find(entry.first);
      return found == b.by_role.end() ? 0 : found->second;
    });
  }
  budget.flops = continued(std::array{at[0].flops, at[1].flops, at[2].flops}, depth);
  return budget;
}

}  // namespace norma
