#include "norma/models/decoder.h"

#include "norma/core/error.h"
#include "norma/graph/differentiate.h"
#include "norma/models/stack.h"
#include "norma/ops/adamw.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/embedding.h"
#include "norma/schemes/catalogue.h"

namespace norma {
namespace {

std::int64_t hidden_width(const DecoderConfig& config) { return config.hidden == 0 ? 4 * config.width : config.hidden; }

}  // namespace

Decoder build_decoder(Graph& graph, const DecoderConfig& config) {
  Parameters parameters(graph, config.dtype);
  const Type ids{{config.batch, config.time}, DType::i32};
  const Wire tokens = graph.input("tokens", ids), targets = graph.input("targets", ids);
  const Wire table = parameters.make("embedding.token", {config.vocabulary, config.width}, Init::normal(0.02));
  const Wire positions = parameters.make("embedding.position", {config.time, config.width}, Init::normal(0.02));
  const Wire embedded = add_positions(embedding(table, tokens), positions);
  const StackConfig stack{.layers = config.layers,
                          .heads = config.heads,
                          .hidden = config.hidden,
                          .activation = config.activation,
                          .norm = config.norm,
                          .mask = Mask::causal};
  const Wire x = build_stack(parameters, find_scheme(config.scheme), stack, embedded);
  const Wire head = parameters.make("head.weight", {config.width, config.vocabulary}, Init::normal(0.02));
  return {linear_cross_entropy(x, head, targets), x, parameters.specs()};
}

TrainingStep build_training_step(const DecoderConfig& config, const CompileOptions& options) {
  Graph graph;
  const Decoder decoder = build_decoder(graph, config);
  Wires parameters;
  for (const ParameterSpec& spec : decoder.parameters) parameters.push_back(graph.find(spec.name));
  const Wires gradients = differentiate(decoder.loss, parameters);
  const Wire control = graph.input("control", {{AdamWControl::size}, config.dtype});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParameterSpec& spec = decoder.parameters[i];
    adamw(parameters[i], gradients[i], control, {}, {.lr = spec.lr, .weight_decay = spec.decay ? 1.0 : 0.0});
  }
  graph.output("loss", decoder.loss);
  return {compile(graph, options), decoder.parameters};
}

double model_flops(const DecoderConfig& config) {
  const double d = static_cast<double>(config.width), hidden = static_cast<double>(hidden_width(config));
  const double time = static_cast<double>(config.time), tokens = static_cast<double>(config.batch) * time;
  const double weights =
      static_cast<double>(config.layers) * (4 * d * d + 2 * d * hidden) + d * static_cast<double>(config.vocabulary);
  const double pairs = (time + 1) / 2;  // keys that a query sees on average
  const double attention = static_cast<double>(config.layers) * 2 * d * pairs;
  return 3 * 2 * (weights + attention) * tokens;
}

}  // namespace norma
