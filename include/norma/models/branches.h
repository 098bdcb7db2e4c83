// What a residual block wraps: attention, cross-attention and feed-forward, each a function of one wire.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "norma/models/parameters.h"
#include "norma/models/rules.h"
#include "norma/ops/activation.h"
#include "norma/ops/softmax.h"
#include "norma/schemes/scheme.h"

namespace norma {

// Makes a norm of the given kind ("norm", "rmsnorm", "unit", ...) over the last axis of x at a named site of the open
// scope.
using NormMaker = std::function<Wire(std::string_view kind, std::string_view site, Wire x)>;

// How every weight of a branch is made.
struct WeightStyle {
  WeightInit start = WeightInit::xavier_normal;
  bool biases = true;
  bool unit = false;  // vectors along the embedding dimension have unit length
  WeightForm form = WeightForm::plain;
};

// A learned gain that starts at `start` and is stored as `stored`: what multiplies is stored * start / stored.
struct StoredGain {
  double start = 1;
  double stored = 1;
};

// What a scheme may ask of attention beyond softmax(q k^T) v. Empty texts: no norm.
struct AttentionExtras {
  std::string q_norm = {}, k_norm = {}, v_norm = {};         // kinds of norms on queries, keys and values
  enum class Width { head, full } norm_width = Width::head;  // each head by itself, gains shared; or all of them as one
  std::string inner_norm = {};                               // on the concatenated heads, before the output projection
  bool head_gain = false;                  // a learned gain per head on the projected output (NormFormer)
  Wire* carried_scores = nullptr;          // scores continue those of the layer below (RealFormer)
  std::optional<double> scale = {};        // of the scores; 1 / sqrt(width of a head) when not given
  std::optional<StoredGain> qk_gain = {};  // on the channels of queries and of keys, one vector for both (nGPT)
};

struct AttentionBranch {
  std::int64_t heads = 1;
  Mask mask = Mask::causal;
  InitRules init = {};
  AttentionExtras extras = {};
  NormMaker norm = nullptr;   // needed when extras ask for norms
  std::int64_t kv_heads = 0;  // 0: as many as heads
  bool rope = false;          // rotary positions on queries and keys; not in cross-attention
  Wire lengths = {};          // i32[batch]: keys from there on are hidden
  Wire memory = {};           // cross-attention: what keys and values are projected from
  OptimiserRules optimiser = {};
  WeightStyle style = {};
};

// out(attention(qkv(x))) for x[batch, time, width]; one packed projection for queries, keys and values, or one for
// queries ("q") and one for keys and values ("kv") of the memory. Called again under the same scope, a branch uses the
// same weights.
Wire attention_branch(Parameters& parameters, Wire x, const AttentionBranch& branch);

struct FeedForwardBranch {
  std::int64_t hidden = 1;
  Activation activation = Activation::gelu;
  InitRules init = {};
  std::string inner_norm = {};          // after the activation
  NormMaker norm = nullptr;             // needed with inner_norm
  bool gated = false;                   // act(a) * b for [a, b] = in(x), each `hidden` wide
  std::optional<StoredGain> gain = {};  // on what the first product gives, before the activation (nGPT)
  OptimiserRules optimiser = {};
  WeightStyle style = {};
};

// out(act(in(x)))
Wire feed_forward_branch(Parameters& parameters, Wire x, const FeedForwardBranch& branch);

}  // namespace norma
