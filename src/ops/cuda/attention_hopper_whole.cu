// Attention of short sequences, and which kernels serve a call; see attention_hopper.h.
#include "ops/cuda/attention_hopper.h"

#ifdef NORMA_SM90A
#include "ops/cuda/attention_hopper_whole.cuh"
#include "ops/cuda/attention_whole.cuh"
#endif

namespace norma::cuda {

#ifdef NORMA_SM90A

namespace {

bool current_device_is_hopper() {
  int device = 0, major = 0, minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && major == 9 &&
         minor == 0;
}

}  // namespace

HopperAttention hopper_attention(const AttentionCall& call) {
  const int longest = std::max(call.queries, call.keys);
  if (call.width > attention::kSide || longest <= 32 ||
      attention::access_of(call, sizeof(__nv_bfloat16)) != attention::Access::chunks || !current_device_is_hopper()) {
    return HopperAttention::none;
  }
  if (attention::fits_whole(call)) return HopperAttention::whole;
  return call.width > 32 && longest > attention::kMostWholeRows ? HopperAttention::tiles : HopperAttention::none;
}

int attention_forward_hopper_whole(const AttentionCall& call, Stream stream) {
  return attention::launch_hopper_whole_forward(call, stream);
}
int attention_backward_hopper_whole(const AttentionCall& call, Stream stream) {
  return attention::launch_hopper_whole_backward(call, stream);
}

#else

HopperAttention hopper_attention(const AttentionCall&) { return HopperAttention::none; }
int attention_forward_hopper_whole(const AttentionCall&, Stream) { return cudaErrorNotSupported; }
int attention_backward_hopper_whole(const AttentionCall&, Stream) { return cudaErrorNotSupported; }

#endif

}  // namespace norma::cuda
