// A model of any family, wired by a scheme.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "norma/models/family.h"
#include "norma/models/parameters.h"
#include "norma/models/stack.h"
#include "norma/norms/norm.h"
#include "norma/ops/activation.h"
#include "norma/ops/segments.h"
#include "norma/schemes/library.h"

namespace norma {

enum class Positions { learned, sinusoidal, rope, none };

// Of the residual stream, in mixed precision.
enum class StreamWidth { f32, bf16 };

// Of norms over the batch. running: those of the batch in training, which running ones follow, and these in evaluation;
// frozen: the running ones, as they are, in training as well; batch: those of the batch always, nothing is kept.
enum class NormStatistics { running, frozen, batch };

// Of graph networks: what a node makes of its neighbours (src/models/gcn/convolution.cpp has the formulas).
enum class GraphConvolution { gcn, sage, gin, gat };

struct ModelConfig {
  Family family = "decoder";
  std::int64_t layers = 6;          // of the only stack, or of the decoder
  std::int64_t encoder_layers = 0;  // encoder-decoder; 0: as many as layers
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 0;           // 0: as many as heads
  std::int64_t hidden = 0;             // of the feed-forward branch; 0: four times the width
  std::int64_t vocabulary = 256;       // of the tokens that are predicted
  std::int64_t source_vocabulary = 0;  // encoder-decoder; 0: one vocabulary and one table for both sides
  std::int64_t classes = 0;            // encoder: a classifier over the mean of a sample's tokens; 0: a token head
  std::int64_t batch = 16;
  std::int64_t time = 64;
  std::int64_t source_time = 0;  // encoder-decoder; 0: as long as time
  SchemeChoice scheme = "pre";
  std::map<std::string, double> constants = {};  // instead of the scheme's own, by name
  NormKind norm = NormKind::layer;               // what `norm` means in a formula
  std::int64_t norm_groups = 0;                  // of GroupNorm; 0: as many as 32, channels and image allow
  NormStatistics norm_statistics = NormStatistics::running;
  std::string qk_norm = {};                  // a norm on queries and keys per head, unless the scheme has its own
  Activation activation = Activation::gelu;  // of the feed-forward branch
  bool gated = false;                        // act(a) * b of a packed projection, in the feed-forward branch
  Positions positions = Positions::learned;  // rope and sinusoidal learn nothing
  bool tied = false;                         // the head is the token table
  bool biases = true;                        // of linear layers; norms keep theirs
  bool dropout = false;                      // whether dropout nodes exist; the rate is an input
  bool smoothing = false;                    // whether label smoothing is an input
  bool mixture = false;                      // whether every row has a second target, with a share of the loss
  GraphConvolution convolution = GraphConvolution::gcn;  // of graph networks
  Segmented readout = Segmented::mean;                   // what the nodes of a graph come to, where it is classified
  WeightInit weights = WeightInit::xavier_normal;
  WeightForm weight_form = WeightForm::plain;  // plain: as the scheme says
  double embedding_std = 0.02;                 // of token and position tables
  double head_std = 0.02;                      // of the head, unless it is tied
  bool scale_embedding = false;                // tokens times sqrt(width)
  DType dtype = DType::f32;
  StreamWidth stream = StreamWidth::f32;     // of mixed precision, where nothing else makes it narrow
  std::map<std::string, double> sizes = {};  // of this family alone, by name (FamilyRow::sizes)
};

// A size of a configuration by name: batch, time, vocabulary, ..., or one of the family's own; 0 where it is not given.
std::int64_t size_of(const ModelConfig& config, const std::string& name);
void set_size(ModelConfig& config, const std::string& name, std::int64_t value);

struct Model {
  Wire loss;    // mean over what is counted, [1]
  Wire hidden;  // what the head reads, [..., width]
  Wire logits;  // as the family's `output` says; empty unless asked for
  std::vector<ParameterSpec> parameters;
  std::vector<SublayerSite> sites;
  std::vector<Schedule> schedules;  // inputs that the host writes each step
  std::vector<ParameterSpec> kept;  // running statistics: states that start as these say
};

// What a model is built for. To look at: norms over the batch take its statistics, whatever the configuration says, so
// that a network needs no history to be measured.
enum class Purpose { look, train, evaluate };

struct ModelOptions {
  bool logits = false;                   // they take memory: the loss alone never holds them
  bool profile = false;                  // see profile.h
  std::optional<LayerOrder> order = {};  // of the stacks through which one stream goes to the output
  Purpose purpose = Purpose::look;
};

// Inputs of the graph, all data and thus each member's own:
//   those of the family, by name
//   "dropout" [1], "dropout_key" i32[4] with dropout; "smoothing" [1] with smoothing; "mixed_targets" as "targets" and
//   "mixture" [1] with a mixture; see ops/dropout.h
//   schedules of the scheme, see Model::schedules
Model build_model(Graph& graph, const ModelConfig& config, const ModelOptions& options = {});

// Floating-point operations that the mathematics of one training step needs: three times those of the forward
// products, by the ops' own cost; nothing is counted twice for recomputation. Each branch counts once, whatever the
// scheme: the measure that speeds are compared in.
double model_flops(const ModelConfig& config);

// The same of what a scheme really wires, read off a forward graph: branches as often as they are called, and products
// in formulas. What `loss` does not depend on is not counted.
double traced_flops(const Graph& graph, Wire loss);

}  // namespace norma
