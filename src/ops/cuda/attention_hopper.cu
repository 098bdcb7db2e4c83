// Attention of long sequences; see attention_hopper.h.
#include "ops/cuda/attention_hopper.h"

#ifdef NORMA_SM90A
#include "ops/cuda/attention_hopper_dkv.cuh"
#include "ops/cuda/attention_hopper_dq.cuh"
#include "ops/cuda/attention_hopper_forward.cuh"
#endif

namespace norma::cuda {

#ifdef NORMA_SM90A

int attention_forward_hopper(const AttentionCall& call, Stream stream) {
  return attention::launch_hopper_forward(call, stream);
}

int attention_backward_hopper(const AttentionCall& call, Stream stream) {
  const int status = attention::launch_hopper_dq(call, stream);
  return status != 0 || (call.dk < 0 && call.dv < 0) ? status : attention::launch_hopper_dkv(call, stream);
}

#else

int attention_forward_hopper(const AttentionCall&, Stream) { return cudaErrorNotSupported; }
int attention_backward_hopper(const AttentionCall&, Stream) { return cudaErrorNotSupported; }

#endif

}  // namespace norma::cuda
