// A stack of residual layers wired by a scheme.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "norma/models/layer_branch.h"
#include "norma/models/parameters.h"
#include "norma/models/schedule.h"
#include "norma/norms/norm.h"
#include "norma/ops/activation.h"
#include "norma/ops/softmax.h"
#include "norma/schemes/evaluate.h"
#include "norma/schemes/place.h"
#include "norma/schemes/scheme.h"

namespace norma {

// A scheme that is right but asks for something that models cannot build.
class NotBuiltError : public Error {
 public:
  using Error::Error;
};

// Which layers are evaluated, and in which order: what analyses of depth change. Of several stacks that one stream goes
// through, their layers are counted on. Every layer keeps its name, weights and constants.
struct LayerOrder {
  std::vector<std::int64_t> layers = {};  // from 0, each at most once
  std::int64_t beside = -1;  // this layer's branches read what the layer evaluated before it read; -1: none does
};

// Which statistics a norm over the batch takes: those of the batch, keeping nothing; the same, and running ones follow;
// or the running ones.
enum class BatchStatistics { of_batch, followed, running };

struct StackConfig {
  LayerBranches branches = {};  // of a layer, in order
  std::int64_t layers = 6;
  std::int64_t width = 0;                 // that of what enters it, where 0
  std::vector<std::int64_t> widths = {};  // of what leaves each layer; empty: all as wide as what enters
  std::vector<std::int64_t> since = {};   // StackSites::since
  std::int64_t heads = 4;
  std::int64_t hidden = 0;  // of the feed-forward branch; 0: four times the width
  Activation activation = Activation::gelu;
  NormKind norm = NormKind::layer;  // what `norm` means in a formula
  std::int64_t norm_groups = 0;     // ModelConfig::norm_groups
  BatchStatistics statistics = BatchStatistics::of_batch;
  Wire dropout = {}, dropout_key = {};  // rate [1] and key i32[4]; empty: no dropout
  StackKind kind = StackKind::single;
  std::int64_t other_layers = 0;  // of the other stack of an encoder-decoder
  std::int64_t kv_heads = 0;      // 0: as many as heads
  bool gated = false;
  bool rope = false;
  bool biases = true;
  std::string qk_norm = {};
  WeightInit weights = WeightInit::xavier_normal;
  WeightForm weight_form = WeightForm::plain;  // plain: as the scheme says
  Wire lengths = {};                           // i32[batch]: tokens of this stack from there on are padding
  Wire memory = {}, memory_lengths = {};       // of a decoder: what cross-attention reads
  Wire condition = {};  // [batch, any]: what a scheme makes scales and shifts of; empty: models have none
  bool ends = true;     // whether the scheme's `final` follows the last layer
  // What the stream becomes before a layer (from 0) reads it: skip connections of a U-Net join it. Empty: itself.
  std::function<Wire(std::int64_t layer, Wire x)> enter = nullptr;
  Variables constants = {};              // instead of the scheme's own
  bool profile = false;                  // see profile.h
  std::optional<LayerOrder> order = {};  // none: all layers, one after the other
};

// One residual sublayer, for probes and analyses.
struct SublayerSite {
  std::string name;  // "layers.3.attn"
  const BranchKind* kind = nullptr;
  Wire stream_in;   // the main stream before it
  Wire branch;      // what its branch returned, dropout included; of several calls the first
  Wire stream_out;  // the main stream after it (where a formula spans a whole layer: after the layer)
};

struct Stack {
  Wire x;
  std::vector<SublayerSite> sites;
  std::vector<Schedule> schedules;
};

// x[batch, time, width] (of images: [batch, pixels, channels]) through all layers and the scheme's final formula.
// Parameters are named by place: "layers.3.attn.qkv.weight", "layers.3.attn.norm1.gain", "final.norm1.gain". A constant
// that depends on the step is an input "schedule.<name>" [1] that the host writes; one that also depends on the layer
// or sublayer is an input for each, "schedule.layers.3.<name>". Dropout follows every branch, inside of f; attention
// probabilities have none. Throws NotBuiltError for what a stack cannot build.
Stack build_stack(Parameters& parameters, const Scheme& scheme, const StackConfig& config, Wire x);

// The form of the weights of its branches: the model's, or the scheme's where it has none.
inline WeightForm form_of_weights(const Scheme& scheme, const StackConfig& config) {
  return config.weight_form == WeightForm::plain ? scheme.weights.form : config.weight_form;
}

// The values of a scheme's constants that do not depend on the step, at layer l and sublayer k of a stack.
Variables stack_numbers(const Scheme& scheme, const StackConfig& config, std::int64_t width, std::int64_t l,
                        std::int64_t k);

}  // namespace norma
