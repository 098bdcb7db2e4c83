// Attention with bf16 tensors on tensor cores.
#include "ops/cuda/attention_backward.cuh"
#include "ops/cuda/attention_forward.cuh"
#include "ops/cuda/attention_hopper.h"
#include "ops/cuda/attention_kinds.h"

namespace norma::cuda {

int attention_forward_bf16(const AttentionCall& call, Stream stream) {
  const HopperAttention hopper = hopper_attention(call);
  if (hopper == HopperAttention::whole) return attention_forward_hopper_whole(call, stream);
  if (hopper == HopperAttention::tiles) return attention_forward_hopper(call, stream);
  return attention::launch_forward<attention::Bf16Math>(call, stream);
}

int attention_backward_bf16(const AttentionCall& call, Stream stream) {
  const HopperAttention hopper = hopper_attention(call);
  if (hopper == HopperAttention::whole) return attention_backward_hopper_whole(call, stream);
  if (hopper == HopperAttention::tiles) return attention_backward_hopper(call, stream);
  return attention::launch_backward<attention::Bf16Math>(call, stream);
}

}  // namespace norma::cuda
