// Attention by kind of arithmetic.
#include "ops/cuda/attention_launch.h"

#include "ops/cuda/attention_kinds.h"

namespace norma::cuda {
namespace {

using Launch = int (*)(const AttentionCall& call, Stream stream);

Launch by_math(AttentionMath math, Launch f32, Launch tf32, Launch bf16) {
  return math == AttentionMath::f32 ? f32 : math == AttentionMath::tf32 ? tf32 : bf16;
}

}  // namespace

int attention_forward(const AttentionCall& call, Stream stream) {
  return by_math(call.math, attention_forward_f32, attention_forward_tf32, attention_forward_bf16)(call, stream);
}

int attention_backward(const AttentionCall& call, Stream stream) {
  return by_math(call.math, attention_backward_f32, attention_backward_tf32, attention_backward_bf16)(call, stream);
}

std::int64_t attention_backward_scratch(std::int64_t batch, std::int64_t heads, std::int64_t queries) {
  const std::int64_t bytes = batch * heads * queries * static_cast<std::int64_t>(sizeof(float));
  return (bytes + 255) / 256 * 256;
}

}  // namespace norma::cuda
