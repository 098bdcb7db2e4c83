#include "norma/models/budget.h"

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

}  // namespace norma
