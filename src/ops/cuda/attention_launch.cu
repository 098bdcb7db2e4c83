// Attention by kind of arithmetic: one launch forward, two backward.
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
  const int status = by_math(call.math, attention_dq_f32, attention_dq_tf32, attention_dq_bf16)(call, stream);
  if (status != 0 || (call.dk < 0 && call.dv < 0)) return status;
  return by_math(call.math, attention_dkv_f32, attention_dkv_tf32, attention_dkv_bf16)(call, stream);
}

std::int64_t attention_backward_scratch(std::int64_t batch, std::int64_t heads, std::int64_t queries) {
  const std::int64_t bytes = batch * heads * queries * static_cast<std::int64_t>(sizeof(float));
  return (bytes + 255) / 256 * 256;
}

}  // namespace norma::cuda
