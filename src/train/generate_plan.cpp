#include "train/generate_plan.h"

#include <algorithm>
#include <map>

#include "norma/core/error.h"
#include "norma/norms/channel.h"
#include "norma/ops/embedding.h"
#include "norma/ops/softmax.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

// What the last stack reads of the values of the first.
Wire memory_of(Graph& graph, const ModelConfig& config) {
  const StackSites first = config.family->sites(config).front();
  const auto in_encoder = [&](const Node& node) {
    return node.scope.str() == first.scope || node.scope.str().starts_with(first.prefix());
  };
  int memory = -1;
  for (const Node& node : graph.nodes()) {
    if (in_encoder(node)) continue;
    for (const int id : node.inputs) {
      const int producer = graph.value(id).producer;
      if (producer < 0 || !in_encoder(graph.node(producer))) continue;
      NORMA_ASSERT(memory < 0 || memory == id);
      memory = id;
    }
  }
  NORMA_ASSERT(memory >= 0);
  return {&graph, memory};
}

std::vector<bool> ancestors(const Graph& graph, std::vector<int> values) {
  std::vector<bool> needed(graph.nodes().size(), false);
  while (!values.empty()) {
    const int producer = graph.value(values.back()).producer;
    values.pop_back();
    if (producer < 0 || needed[static_cast<std::size_t>(producer)]) continue;
    needed[static_cast<std::size_t>(producer)] = true;
    const Ids& inputs = graph.node(producer).inputs;
    values.insert(values.end(), inputs.begin(), inputs.end());
  }
  return needed;
}

// Readers of nothing must not stand in the way of fusions.
std::shared_ptr<const Plan> compile_needed(Graph& graph, const Backend& backend) {
  std::vector<int> outputs;
  for (const Output& output : graph.outputs()) outputs.push_back(output.value);
  const std::vector<bool> needed = ancestors(graph, outputs);
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) nodes.push_back(graph.nodes()[i]);
  }
  graph.replace_nodes(std::move(nodes));
  return compile(graph, backend);
}

// Statistics over positions would see what has not been said yet.
void check_causal(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    const auto* const norm = dynamic_cast<const ChannelNorm*>(node.op.get());
    if (norm != nullptr && norm->options().region != Region::running)
      fail("'{}' is a {}, which sees all tokens at once; such a model cannot say one after another", node.scope.str(),
           node.op->name());
  }
}

// The nodes between `from` and `to` once more, reading `instead` where they read `from`.
Wire retrace(Graph& graph, Wire from, Wire to, Wire instead) {
  const std::vector<bool> needed = ancestors(graph, {to.id()});
  std::map<int, Wire> known = {{from.id(), instead}};
  const std::size_t count = needed.size();
  for (std::size_t index = 0; index < count; ++index) {
    const Node node = graph.nodes()[index];
    const auto changes = [&](int id) { return known.contains(id); };
    if (!needed[index] || std::none_of(node.inputs.begin(), node.inputs.end(), changes)) continue;
    Wires inputs;
    for (const int id : node.inputs) inputs.push_back(changes(id) ? known.at(id) : Wire(&graph, id));
    const Wires outputs = graph.apply(node.op, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) known[node.outputs[i]] = outputs[i];
  }
  return known.at(to.id());
}

void read_instead(Graph& graph, Wire from, Wire instead) {
  std::vector<Node> nodes = graph.nodes();
  for (Node& node : nodes) std::replace(node.inputs.begin(), node.inputs.end(), from.id(), instead.id());
  graph.replace_nodes(std::move(nodes));
}

}  // namespace

ForwardPlan encoder_plan(const ModelConfig& config, const Backend& backend) {
  Graph graph;
  const Model model = build_model(graph, config, {.purpose = Purpose::evaluate});
  graph.output("memory", memory_of(graph, config));
  return {compile_needed(graph, backend), model.schedules};
}

ForwardPlan decoder_plan(const ModelConfig& config, const Backend& backend) {
  Graph graph;
  const Model model = build_model(graph, config, {.logits = true, .purpose = Purpose::evaluate});
  check_causal(graph);
  if (config.family->speech == Speech::answers) {
    const Wire memory = memory_of(graph, config);
    read_instead(graph, memory, graph.input("memory", memory.type()));
  }
  const Wire positions = graph.input("positions", {{config.batch}, DType::i32});
  const Wire rows = reshape(model.hidden, {config.batch * config.time, config.width});
  const Wire logits = retrace(graph, model.hidden, model.logits, embedding(rows, positions));
  graph.output("logits", logits);
  graph.output("probabilities", softmax(logits));
  return {compile_needed(graph, backend), model.schedules};
}

}  // namespace norma
