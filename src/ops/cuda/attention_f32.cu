// Attention with f32 multiply-adds.
#include "ops/cuda/attention_dkv.cuh"
#include "ops/cuda/attention_dq.cuh"
#include "ops/cuda/attention_forward.cuh"
#include "ops/cuda/attention_kinds.h"

namespace norma::cuda {

int attention_forward_f32(const AttentionCall& call, Stream stream) {
  return attention::launch_forward<attention::F32Math>(call, stream);
}
int attention_dq_f32(const AttentionCall& call, Stream stream) {
  return attention::launch_dq<attention::F32Math>(call, stream);
}
int attention_dkv_f32(const AttentionCall& call, Stream stream) {
  return attention::launch_dkv<attention::F32Math>(call, stream);
}

}  // namespace norma::cuda
