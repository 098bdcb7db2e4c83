// The only file that needs sm_90a; see attention_hopper.h.
#include "ops/cuda/attention_hopper.h"

#include "ops/cuda/attention_whole.cuh"

#ifdef NORMA_SM90A
#include "ops/cuda/attention_hopper_dkv.cuh"
#include "ops/cuda/attention_hopper_dq.cuh"
#include "ops/cuda/attention_hopper_forward.cuh"
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

bool hopper_attention_serves(const AttentionCall& call) {
  return call.width > 32 && call.width <= attention::kSide &&
         std::max(call.queries, call.keys) > attention::kMostWholeRows &&
         attention::access_of(call, sizeof(__nv_bfloat16)) == attention::Access::chunks && current_device_is_hopper();
}

int attention_forward_hopper(const AttentionCall& call, Stream stream) {
  return attention::launch_hopper_forward(call, stream);
}

int attention_backward_hopper(const AttentionCall& call, Stream stream) {
  const int status = attention::launch_hopper_dq(call, stream);
  return status != 0 || (call.dk < 0 && call.dv < 0) ? status : attention::launch_hopper_dkv(call, stream);
}

#else

bool hopper_attention_serves(const AttentionCall&) { return false; }
int attention_forward_hopper(const AttentionCall&, Stream) { return cudaErrorNotSupported; }
int attention_backward_hopper(const AttentionCall&, Stream) { return cudaErrorNotSupported; }

#endif

}  // namespace norma::cuda
