// Attention with f32 tensors on tensor cores, as tf32.
#include "ops/cuda/attention_dkv.cuh"
#include "ops/cuda/attention_dq.cuh"
#include "ops/cuda/attention_forward.cuh"
#include "ops/cuda/attention_kinds.h"

namespace norma::cuda {

int attention_forward_tf32(const AttentionCall& call, Stream stream) {
  return attention::launch_forward<attention::Tf32Math>(call, stream);
}
int attention_dq_tf32(const AttentionCall& call, Stream stream) {
  return attention::launch_dq<attention::Tf32Math>(call, stream);
}
int attention_dkv_tf32(const AttentionCall& call, Stream stream) {
  return attention::launch_dkv<attention::Tf32Math>(call, stream);
}

}  // namespace norma::cuda
