// Attention and its derivatives in double, from their definitions, one pair of query and key at a time.
#pragma once

#include <vector>

#include "bench/cuda/attention_case.h"

namespace norma::bench {

// Dense: [batch, time, heads, width].
struct AttentionInputs {
  std::vector<double> q, k, v, dcontext;
};

struct AttentionResults {
  std::vector<double> context, lse;  // lse [batch, heads, queries]
  std::vector<double> dq, dk, dv;
  double score_gradient = 0;  // the largest |scale P dP|: dP - delta cancels
};

AttentionResults attention_reference(const AttentionSetup& setup, const AttentionInputs& inputs);

}  // namespace norma::bench
