// What a residual block wraps: attention and feed-forward, each a function of one wire.
#pragma once

#include <cstdint>

#include "norma/models/parameters.h"
#include "norma/ops/activation.h"
#include "norma/ops/softmax.h"

namespace norma {

struct AttentionBranch {
  std::int64_t heads = 1;
  Mask mask = Mask::causal;
};

// out(attention(qkv(x))) for x[batch, time, width]; one packed projection for queries, keys and values.
Wire attention_branch(Parameters& parameters, Wire x, const AttentionBranch& branch);

struct FeedForwardBranch {
  std::int64_t hidden = 1;
  Activation activation = Activation::gelu;
};

// out(act(in(x)))
Wire feed_forward_branch(Parameters& parameters, Wire x, const FeedForwardBranch& branch);

}  // namespace norma
