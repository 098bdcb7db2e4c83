// What a residual block wraps: attention and feed-forward, each a function of one wire.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "norma/models/parameters.h"
#include "norma/ops/activation.h"
#include "norma/ops/softmax.h"

namespace norma {

// How a scheme starts the weights of a branch: what multiplies the Xavier gain, by role, and standard deviations that
// replace Xavier altogether. Roles: query, key, value, out, ffn; "all" and "block" stand for every one of them.
struct InitRules {
  std::map<std::string, double> gain = {};
  std::map<std::string, double> deviation = {};

  double gain_of(std::string_view role) const;                      // 1 unless given
  std::optional<double> deviation_of(std::string_view role) const;  // none unless given
};

// Makes a norm of the given kind ("norm", "rmsnorm", ...) over the last axis of x at a named site of the open scope.
using NormMaker = std::function<Wire(std::string_view kind, std::string_view site, Wire x)>;

// What a scheme may ask of attention beyond softmax(q k^T) v. Empty texts: no norm.
struct AttentionExtras {
  std::string q_norm = {}, k_norm = {}, v_norm = {};         // kinds of norms on queries, keys and values
  enum class Width { head, full } norm_width = Width::head;  // each head by itself, gains shared; or all of them as one
  std::string inner_norm = {};                               // on the concatenated heads, before the output projection
  bool head_gain = false;          // a learned gain per head on the projected output (NormFormer)
  Wire* carried_scores = nullptr;  // scores continue those of the layer below (RealFormer)

  bool any() const {
    return !q_norm.empty() || !k_norm.empty() || !v_norm.empty() || !inner_norm.empty() || head_gain ||
           carried_scores != nullptr;
  }
};

struct AttentionBranch {
  std::int64_t heads = 1;
  Mask mask = Mask::causal;
  InitRules init = {};
  AttentionExtras extras = {};
  NormMaker norm = nullptr;  // needed when extras ask for norms
};

// out(attention(qkv(x))) for x[batch, time, width]; one packed projection for queries, keys and values. Called again
// under the same scope, a branch uses the same weights.
Wire attention_branch(Parameters& parameters, Wire x, const AttentionBranch& branch);

struct FeedForwardBranch {
  std::int64_t hidden = 1;
  Activation activation = Activation::gelu;
  InitRules init = {};
  std::string inner_norm = {};  // after the activation
  NormMaker norm = nullptr;     // needed with inner_norm
};

// out(act(in(x)))
Wire feed_forward_branch(Parameters& parameters, Wire x, const FeedForwardBranch& branch);

}  // namespace norma
