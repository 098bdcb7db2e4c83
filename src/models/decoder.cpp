#include "norma/models/decoder.h"

#include "norma/graph/differentiate.h"
#include "norma/ops/adamw.h"

namespace norma {

TrainingStep build_training_step(const ModelConfig& config, const CompileOptions& options) {
  Graph graph;
  const Model model = build_model(graph, config);
  Wires parameters;
  for (const ParameterSpec& spec : model.parameters) parameters.push_back(graph.find(spec.name));
  const Wires gradients = differentiate(model.loss, parameters);
  const Wire control = graph.input("control", {{AdamWControl::size}, config.dtype});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParameterSpec& spec = model.parameters[i];
    adamw(parameters[i], gradients[i], control, {}, {.lr = spec.lr, .weight_decay = spec.decay});
  }
  graph.output("loss", model.loss);
  return {compile(graph, options), model.parameters};
}

}  // namespace norma
