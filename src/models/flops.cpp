// Multiplications and additions of a training step, counted from the configuration alone or from a traced graph.
#include <algorithm>
#include <iterator>
#include <vector>

#include "norma/models/model.h"

namespace norma {
namespace {

// Of one node, if it is a product.
double product_flops(const Graph& graph, const Node& node) {
  const std::string_view products[] = {"linear", "matmul", "attention", "linear_cross_entropy"};
  const std::string_view op = node.op->name();
  if (std::find(std::begin(products), std::end(products), op) != std::end(products))
    return node.op->cost(graph.input_types(node), graph.output_types(node)).flops;
  // A sum of products that is written out: the weighted sum of a stream's copies.
  if (op != "sum_to") return 0;
  const Value& summed = graph.value(node.inputs[0]);
  const bool product = summed.producer >= 0 && graph.node(summed.producer).op->name() == "mul";
  return product ? 2 * static_cast<double>(summed.type.shape.elements()) : 0;
}

struct Sizes {
  double d, kv, hidden, ffn_matrices;

  explicit Sizes(const ModelConfig& c)
      : d(static_cast<double>(c.width)),
        kv(c.kv_heads == 0 ? d : d * static_cast<double>(c.kv_heads) / static_cast<double>(c.heads)),
        hidden(c.hidden == 0 ? 4 * d : static_cast<double>(c.hidden)),
        ffn_matrices(c.gated ? 3 : 2) {}

  double feed_forward() const { return ffn_matrices * d * hidden; }  // per token
  double projections() const { return 2 * d * d + 2 * d * kv; }
  // Scores and context of one query that sees so many keys.
  double pairs(double keys) const { return 2 * d * keys; }
};

}  // namespace

double model_flops(const ModelConfig& config) {
  const Sizes s(config);
  const double batch = static_cast<double>(config.batch), time = static_cast<double>(config.time);
  const double layers = static_cast<double>(config.layers);
  const bool causal = config.family != Family::encoder;
  const double keys = causal ? (time + 1) / 2 : time;  // that a query sees on average
  double products = batch * time * layers * (s.projections() + s.feed_forward() + s.pairs(keys));
  if (config.family == Family::encoder_decoder) {
    const double source = static_cast<double>(config.source_time == 0 ? config.time : config.source_time);
    const double below = static_cast<double>(config.encoder_layers == 0 ? config.layers : config.encoder_layers);
    products += batch * source * below * (s.projections() + s.feed_forward() + s.pairs(source));
    products += batch * layers * (time * (2 * s.d * s.d + s.pairs(source)) + source * 2 * s.d * s.kv);
  }
  const double outputs = static_cast<double>(config.classes > 0 ? config.classes : config.vocabulary);
  products += batch * (config.classes > 0 ? 1 : time) * s.d * outputs;
  return 3 * 2 * products;
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
