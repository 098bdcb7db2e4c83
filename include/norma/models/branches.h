// What a residual block wraps: attention and feed-forward, each a function of one wire.
#pragma once

#include <cstdint>
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

struct AttentionBranch {
  std::int64_t heads = 1;
  Mask mask = Mask::causal;
  InitRules init = {};
};

// out(attention(qkv(x))) for x[batch, time, width]; one packed projection for queries, keys and values. Called again
// under the same scope, a branch uses the same weights.
Wire attention_branch(Parameters& parameters, Wire x, const AttentionBranch& branch);

struct FeedForwardBranch {
  std::int64_t hidden = 1;
  Activation activation = Activation::gelu;
  InitRules init = {};
};

// out(act(in(x)))
Wire feed_forward_branch(Parameters& parameters, Wire x, const FeedForwardBranch& branch);

}  // namespace norma
