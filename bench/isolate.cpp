#include "bench/isolate.h"

#include <algorithm>
#include <set>

#include "norma/backends/cpu.h"
#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/graph/plan.h"

namespace norma::bench {

Isolated isolate(const Graph& graph, std::string_view op_name) {
  const auto found = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                                  [&](const Node& node) { return node.op->name() == op_name; });
  if (found == graph.nodes().end()) fail("no node named '{}' in the graph", op_name);
  std::set<int> read;
  for (const Node& node : graph.nodes()) read.insert(node.inputs.begin(), node.inputs.end());
  for (const Output& output : graph.outputs()) read.insert(output.value);

  Graph alone;
  Wires inputs;
  for (std::size_t i = 0; i < found->inputs.size(); ++i) {
    inputs.push_back(alone.input("in" + std::to_string(i), graph.value(found->inputs[i]).type));
  }
  const Wires outputs = alone.apply(found->op, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (read.contains(found->outputs[i])) alone.output("out" + std::to_string(i), outputs[i]);
  }
  const Cost cost = found->op->cost(graph.input_types(*found), graph.output_types(*found));
  return {compile(alone, cpu_backend()), cost};
}

void fill_inputs(Session& session) {
  for (const std::string& name : session.plan().slot_names(Role::input)) {
    if (session.plan().slot(name).type.dtype != DType::f32) continue;
    const RandomStream stream(1, name);
    std::vector<float> tensor(session.handle(name).elements());
    // A few thousand distinct numbers, repeated: large tensors should not take longer to fill than to measure.
    constexpr std::size_t kDistinct = 4099;
    for (std::size_t i = 0; i < std::min(tensor.size(), kDistinct); ++i)
      tensor[i] = static_cast<float>(stream.normal(i));
    for (std::size_t i = kDistinct; i < tensor.size(); ++i) tensor[i] = tensor[i - kDistinct];
    session.write<float>(name, tensor);
  }
}

}  // namespace norma::bench
