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

template <DqStage kStage>
int launch_hopper_dq(const AttentionCall& call, Stream stream) {
  constexpr std::int64_t kShared = (2 + 2 * dq_buffers(kStage)) * kTileBytes + 1024;
  static_assert(kStage == DqStage::delta || kShared >= 4 * kSide * stride_of<HopperTile>(kSide) * 2);  // careful way
  return launch_kernel(hopper_dq_kernel<Bf16Math, kStage>,
                       std::int64_t{call.batch} * call.heads * divide_up(call.queries, kSide), kGroup, kShared, call,
                       Access::chunks, stream);
}

int launch_hopper_delta(const AttentionCall& call, Stream stream) {
  if (call.context < 0) return launch_hopper_dq<DqStage::delta>(call, stream);
  const std::int64_t rows = std::int64_t{call.batch} * call.heads * call.queries;
  return launch_kernel(hopper_delta_kernel<Bf16Math>, divide_up(rows, 32), 256, 0, call, Access::chunks, stream);
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
  int status = attention::launch_hopper_delta(call, stream);
  if (status != 0) return status;
  if (attention_is_once(call)) return attention_backward_hopper_once(call, stream);
  if (call.dq >= 0) status = attention::launch_hopper_dq<attention::DqStage::gradient>(call, stream);
  return status != 0 || (call.dk < 0 && call.dv < 0) ? status : attention::launch_hopper_dkv(call, stream);
}

#else

int attention_forward_hopper(const AttentionCall&, Stream) { return cudaErrorNotSupported; }
int attention_backward_hopper(const AttentionCall&, Stream) { return cudaErrorNotSupported; }

#endif

}  // namespace norma::cuda
