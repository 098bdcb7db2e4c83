// Attention by kind of arithmetic.
#include "ops/cuda/attention_launch.h"

#include "ops/cuda/attention_hopper.h"
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

std::int64_t attention_delta_bytes(const AttentionCall& call) {
  const std::int64_t rows = std::int64_t{call.batch} * call.heads * call.queries;
  return (rows * static_cast<std::int64_t>(sizeof(float)) + 255) / 256 * 256;
}

std::int64_t attention_backward_scratch(const AttentionCall& call) {
  return attention_delta_bytes(call) + (call.math == AttentionMath::bf16 ? attention_once_scratch(call) : 0);
}

}  // namespace norma::cuda
