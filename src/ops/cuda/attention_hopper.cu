// Attention of long sequences; see attention_hopper.h.
#include "ops/cuda/attention_hopper.h"

#ifdef NORMA_SM90A
#include "ops/cuda/attention_hopper_dkv.cuh"
#include "ops/cuda/attention_hopper_dq.cuh"
#include "ops/cuda/attention_hopper_forward.cuh"
#endif

namespace norma::cuda {

#ifdef NORMA_SM90A

namespace attention {
namespace {

int launch_hopper_forward(const AttentionCall& call, Stream stream) {
  constexpr std::int64_t kShared = (kForwardRows + 4 * kSide) * kLine * 2 + 1024;
  static_assert(kShared >= (kForwardRows + 4 * 32) * stride_of<HopperTile>(kSide) * 2);  // of the careful way
  return launch_kernel(hopper_forward_kernel<Bf16Math>,
                       std::int64_t{call.batch} * call.heads * divide_up(call.queries, kForwardRows), kForwardThreads,
                       kShared, call, Access::chunks, stream);
}

int launch_hopper_dq(const AttentionCall& call, Stream stream) {
  constexpr auto shared_of = [](DqStage stage) { return (2 + 2 * dq_buffers(stage)) * kTileBytes + 1024; };
  constexpr std::int64_t kShared = shared_of(DqStage::gradient);
  static_assert(kShared >= 4 * kSide * stride_of<HopperTile>(kSide) * 2);  // of the careful way
  const std::int64_t rows = std::int64_t{call.batch} * call.heads * call.queries;
  const std::int64_t blocks = std::int64_t{call.batch} * call.heads * divide_up(call.queries, kSide);
  int status = 0;
  if (call.context >= 0) {
    status = launch_kernel(hopper_delta_kernel<Bf16Math>, divide_up(rows, 32), 256, 0, call, Access::chunks, stream);
  } else {
    status = launch_kernel(hopper_dq_kernel<Bf16Math, DqStage::delta>, blocks, kGroup, shared_of(DqStage::delta), call,
                           Access::chunks, stream);
  }
  if (status != 0 || call.dq < 0) return status;
  return launch_kernel(hopper_dq_kernel<Bf16Math, DqStage::gradient>, blocks, kGroup, kShared, call, Access::chunks,
                       stream);
}

int launch_hopper_dkv(const AttentionCall& call, Stream stream) {
  constexpr std::int64_t kNumbers = 4 * kSide * 4;
  constexpr std::int64_t kShared = 6 * kTileBytes + 1024 + kNumbers;
  static_assert(kShared >= 4 * kSide * stride_of<HopperTile>(kSide) * 2 + kNumbers);  // of the careful way
  return launch_kernel(hopper_dkv_kernel<Bf16Math>,
                       std::int64_t{call.batch} * call.kv_heads * divide_up(call.keys, kSide), kGroup, kShared, call,
                       Access::chunks, stream);
}

}  // namespace
}  // namespace attention

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
