// Multiplications and additions of a training step, by what the ops of a traced graph say of themselves.
#include <algorithm>
#include <vector>

#include "norma/models/model.h"

namespace norma {
namespace {

// Of one node: its own, or as the end of a sum of products that is written out (the weighted sum of a stream's copies).
double product_flops(const Graph& graph, const Node& node) {
  if (node.op->elementary() != Op::Elementary::sum)
    return node.op->cost(graph.input_types(node), graph.output_types(node)).products;
  const Value& summed = graph.value(node.inputs[0]);
  const bool product = summed.producer >= 0 && graph.node(summed.producer).op->elementary() == Op::Elementary::product;
  return product ? 2 * static_cast<double>(summed.type.shape.elements()) : 0;
}

double flops_at(ModelConfig config, std::int64_t layers, std::int64_t encoder_layers) {
  config.layers = layers;
  config.encoder_layers = encoder_layers;
  Graph graph;
  const Model model = build_model(graph, config);
  return traced_flops(graph, model.loss);
}

}  // namespace

double model_flops(const ModelConfig& config) {
  ModelConfig plain = config;
  plain.scheme = "x + f(x)";
  plain.constants.clear();
  if (config.family->layers == FamilyRow::Layers::different) {
    Graph graph;
    return traced_flops(graph, build_model(graph, plain).loss);
  }
  const double one = flops_at(plain, 1, 1), layer = flops_at(plain, 2, 1) - one, below = flops_at(plain, 1, 2) - one;
  const std::int64_t depth_below = config.encoder_layers == 0 ? config.layers : config.encoder_layers;
  return one + static_cast<double>(config.layers - 1) * layer + static_cast<double>(depth_below - 1) * below;
}

double traced_flops(const Graph& graph, Wire loss) {
  std::vector<bool> needed(graph.values().size(), false);
  needed[static_cast<std::size_t>(loss.id())] = true;
  double forward = 0;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    const auto read = [&](int id) { return needed[static_cast<std::size_t>(id)]; };
    if (std::none_of(node->outputs.begin(), node->outputs.end(), read)) continue;
    for (const int id : node->inputs) needed[static_cast<std::size_t>(id)] = true;
    forward += product_flops(graph, *node);
  }
  return 3 * forward;
}

}  // namespace norma
