// Attention with f32 multiply-adds.
#include "ops/cuda/attention_backward.cuh"
#include "ops/cuda/attention_forward.cuh"
#include "ops/cuda/attention_kinds.h"

namespace norma::cuda {

int attention_forward_f32(const AttentionCall& call, Stream stream) {
  return attention::launch_forward<attention::F32Math>(call, stream);
}
int attention_backward_f32(const AttentionCall& call, Stream stream) {
  return attention::launch_backward<attention::F32Math>(call, stream);
}

}  // namespace norma::cuda
