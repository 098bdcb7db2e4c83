// A decoder-only language model and its whole training step as one graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "norma/graph/plan.h"
#include "norma/models/parameters.h"
#include "norma/norms/norm.h"
#include "norma/ops/activation.h"

namespace norma {

struct DecoderConfig {
  std::int64_t layers = 6;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t hidden = 0;  // of the feed-forward branch; 0: four times the width
  std::int64_t vocabulary = 256;
  std::int64_t batch = 16;
  std::int64_t time = 64;
  std::string scheme = "pre";  // a name of the catalogue, or a formula for every sublayer
  NormKind norm = NormKind::layer;
  Activation activation = Activation::gelu;
  DType dtype = DType::f32;
};

struct Decoder {
  Wire loss;    // mean cross-entropy, [1]
  Wire hidden;  // what the output projection reads, [batch, time, width]
  std::vector<ParameterSpec> parameters;
};

// Inputs of the graph: "tokens" and "targets", i32[batch, time], and the schedules of the scheme.
Decoder build_decoder(Graph& graph, const DecoderConfig& config);

// Loss, gradients and AdamW. Further inputs: "control" (AdamWControl). Output: "loss".
struct TrainingStep {
  std::shared_ptr<const Plan> plan;
  std::vector<ParameterSpec> parameters;
};
TrainingStep build_training_step(const DecoderConfig& config, const CompileOptions& options);

// Floating-point operations that the mathematics of one training step needs: three times those of the forward
// products; attention counts only the pairs that a causal mask leaves; nothing is counted twice for recomputation.
double model_flops(const DecoderConfig& config);

}  // namespace norma
