#include "norma/models/model.h"

#include "norma/core/error.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/matmul.h"
#include "norma/schemes/catalogue.h"

namespace norma {
namespace {

std::int64_t hidden_width(const ModelConfig& config) { return config.hidden == 0 ? 4 * config.width : config.hidden; }

}  // namespace

Model build_model(Graph& graph, const ModelConfig& config, const ModelOptions& options) {
  Parameters parameters(graph, config.dtype);
  const Type ids{{config.batch, config.time}, DType::i32};
  const Wire tokens = graph.input("tokens", ids), targets = graph.input("targets", ids);
  const Init start = Init::normal(config.embedding_std);
  const Wire table = parameters.make({config.vocabulary, config.width},
                                     {.name = "embedding.token", .init = start, .role = "embedding"});
  const Wire positions =
      parameters.make({config.time, config.width}, {.name = "embedding.position", .init = start, .role = "position"});
  const Wire embedded = add_positions(embedding(table, tokens), positions);
  StackConfig stack{.layers = config.layers,
                    .heads = config.heads,
                    .hidden = config.hidden,
                    .activation = config.activation,
                    .norm = config.norm,
                    .mask = Mask::causal};
  if (config.dropout) {
    stack.dropout = graph.input("dropout", {{1}, config.dtype});
    stack.dropout_key = graph.input("dropout_key", {{4}, DType::i32});
  }
  Stack built = build_stack(parameters, find_scheme(config.scheme), stack, embedded);
  const Wire smoothing = config.smoothing ? graph.input("smoothing", {{1}, config.dtype}) : Wire();
  const Wire head =
      parameters.make({config.width, config.vocabulary}, {.name = "head.weight", .init = start, .role = "head"});
  Model model;
  model.hidden = built.x;
  model.loss = linear_cross_entropy(built.x, head, targets, smoothing);
  if (options.logits) model.logits = matmul_rows(built.x, head);
  model.parameters = parameters.specs();
  model.sites = std::move(built.sites);
  model.schedules = std::move(built.schedules);
  return model;
}

double model_flops(const ModelConfig& config) {
  const double d = static_cast<double>(config.width), hidden = static_cast<double>(hidden_width(config));
  const double time = static_cast<double>(config.time), tokens = static_cast<double>(config.batch) * time;
  const double weights =
      static_cast<double>(config.layers) * (4 * d * d + 2 * d * hidden) + d * static_cast<double>(config.vocabulary);
  const double pairs = (time + 1) / 2;  // keys that a query sees on average
  const double attention = static_cast<double>(config.layers) * 2 * d * pairs;
  return 3 * 2 * (weights + attention) * tokens;
}

}  // namespace norma
