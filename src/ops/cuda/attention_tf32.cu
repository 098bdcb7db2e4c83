// Attention with f32 tensors on tensor cores, as tf32.
#include "ops/cuda/attention_backward.cuh"
#include "ops/cuda/attention_forward.cuh"
#include "ops/cuda/attention_kinds.h"

namespace norma::cuda {

int attention_forward_tf32(const AttentionCall& call, Stream stream) {
  return attention::launch_forward<attention::Tf32Math>(call, stream);
}
int attention_backward_tf32(const AttentionCall& call, Stream stream) {
  return attention::launch_backward<attention::Tf32Math>(call, stream);
}

}  // namespace norma::cuda
