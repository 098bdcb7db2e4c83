#include "norma/models/decoder.h"

#include "norma/core/error.h"
#include "norma/graph/differentiate.h"
#include "norma/models/branches.h"
#include "norma/models/fusions.h"
#include "norma/norms/row.h"
#include "norma/ops/adamw.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"

namespace norma {
namespace {

std::int64_t hidden_width(const DecoderConfig& config) { return config.hidden == 0 ? 4 * config.width : config.hidden; }

Wire norm(Parameters& parameters, std::string_view name, Wire x) {
  const auto scope = parameters.graph().scope(name);
  const std::int64_t width = x.shape().channels();
  const Wire gain = parameters.make("gain", {width}, Init::constant(1));
  const Wire bias = parameters.make("bias", {width}, Init::constant(0));
  return layer_norm(x, gain, bias);
}

}  // namespace

Decoder build_decoder(Graph& graph, const DecoderConfig& config) {
  if (config.layers < 1) fail("a decoder needs at least one layer, but {} were asked for", config.layers);
  Parameters parameters(graph, config.dtype);
  const Type ids{{config.batch, config.time}, DType::i32};
  const Wire tokens = graph.input("tokens", ids), targets = graph.input("targets", ids);
  const Wire table = parameters.make("embedding.token", {config.vocabulary, config.width}, Init::normal(0.02));
  const Wire positions = parameters.make("embedding.position", {config.time, config.width}, Init::normal(0.02));
  Wire x = add_positions(embedding(table, tokens), positions);
  const auto attn = [&](Wire in) { return attention_branch(parameters, in, {.heads = config.heads}); };
  const auto ffn = [&](Wire in) {
    return feed_forward_branch(parameters, in, {.hidden = hidden_width(config), .activation = config.activation});
  };
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const auto scope = graph.scope("layers." + std::to_string(layer));
    const auto segment = graph.segment();
    switch (config.placement) {
      case Placement::pre:
        x = x + attn(norm(parameters, "norm1", x));
        x = x + ffn(norm(parameters, "norm2", x));
        break;
      case Placement::post:
        x = norm(parameters, "norm1", x + attn(x));
        x = norm(parameters, "norm2", x + ffn(x));
        break;
    }
  }
  if (config.placement == Placement::pre) x = norm(parameters, "final", x);
  const Wire head = parameters.make("head.weight", {config.width, config.vocabulary}, Init::normal(0.02));
  return {linear_cross_entropy(x, head, targets), x, parameters.specs()};
}

TrainingStep build_training_step(const DecoderConfig& config, const CompileOptions& options) {
  Graph graph;
  const Decoder decoder = build_decoder(graph, config);
  const Wires parameters = graph.parameters();
  const Wires gradients = differentiate(decoder.loss, parameters);
  const Wire control = graph.input("control", {{AdamWControl::size}, config.dtype});
  for (std::size_t i = 0; i < parameters.size(); ++i) adamw(parameters[i], gradients[i], control);
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
