// Attention with bf16 tensors on tensor cores.
#include "ops/cuda/attention_dkv.cuh"
#include "ops/cuda/attention_dq.cuh"
#include "ops/cuda/attention_forward.cuh"
#include "ops/cuda/attention_kinds.h"

namespace norma::cuda {

int attention_forward_bf16(const AttentionCall& call, Stream stream) {
  return attention::launch_forward<attention::Bf16Math>(call, stream);
}
int attention_dq_bf16(const AttentionCall& call, Stream stream) {
  return attention::launch_dq<attention::Bf16Math>(call, stream);
}
int attention_dkv_bf16(const AttentionCall& call, Stream stream) {
  return attention::launch_dkv<attention::Bf16Math>(call, stream);
}

}  // namespace norma::cuda
