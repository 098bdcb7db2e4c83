// The backward pass of long sequences in one kernel; see attention_hopper.h.
#include "ops/cuda/attention_hopper.h"

#ifdef NORMA_SM90A
#include "ops/cuda/attention_hopper_once.cuh"
#include "ops/cuda/hopper_product_launch.cuh"
#endif

namespace norma::cuda {

#ifdef NORMA_SM90A

namespace attention {
namespace {

// [member, sample, row, column] of one of the tensors, where rows of a time step are `row` elements apart.
bool make_rows_map(CUtensorMap& map, const AttentionCall& call, std::int64_t offset, int rows, std::int64_t row) {
  const Members members = in_order(call.members);
  const std::int64_t step = row * static_cast<std::int64_t>(sizeof(HopperTile)), sample = step * rows;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(call.heads) * kSide, static_cast<cuuint64_t>(rows),
                              static_cast<cuuint64_t>(call.batch), static_cast<cuuint64_t>(members.count)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(step), static_cast<cuuint64_t>(sample),
                                static_cast<cuuint64_t>(members.count > 1 ? members.stride : sample * call.batch)};
  const cuuint32_t box[] = {kSide, kSide, 1, 1}, every[] = {1, 1, 1, 1};
  return product::map_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, members.base + offset, sizes, strides, box,
                                every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Rows of keys that are there but hidden by a length would be multiplied by 0, which NaN survive.
bool has_shape(const AttentionCall& call) {
  return call.width == kSide && call.heads == call.kv_heads && call.lengths < 0 &&
         std::max(call.queries, call.keys) <= kMostOnceRows &&
         (call.mask == KeyMask::full || call.queries == call.keys) &&
         hopper_attention(call) == HopperAttention::tiles && product::map_encoder() != nullptr;
}

// A block has a multiprocessor to itself: most of them should have one all the time.
bool has_enough_heads(const AttentionCall& call) {
  const std::int64_t heads = std::int64_t{call.batch} * call.heads * call.members.count, at_once = multiprocessors();
  return 4 * heads >= 3 * round_up(heads, at_once);
}

}  // namespace
}  // namespace attention

std::int64_t attention_once_scratch(const AttentionCall& call) {
  if (!attention::has_shape(call)) return 0;
  return std::int64_t{call.batch} * call.heads * divide_up(call.queries, attention::kSide) * attention::kSumsOfTile *
         static_cast<std::int64_t>(sizeof(float));
}

bool attention_is_once(const AttentionCall& call) {
  return call.dq >= 0 && call.dk >= 0 && call.dv >= 0 && attention::has_shape(call) &&
         attention::has_enough_heads(call);
}

int attention_backward_hopper_once(const AttentionCall& call, Stream stream) {
  using namespace attention;
  constexpr auto kKernel = hopper_once_kernel<Bf16Math>;
  // The careful way has tiles of 16 rows a warp and two pairs of 32, and numbers of these.
  static_assert(kOnceBytes >= (2 * kOnceWarps * 16 + 4 * 32) * stride_of<HopperTile>(kSide) * 2 + 4 * 32 * 4);
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kOnceBytes);
  if (allowed != cudaSuccess) return allowed;
  OnceBackward all{.call = call,
                   .from_the_end = call.members.stride < 0,
                   .sums = call.scratch + attention_delta_bytes(call),
                   .q = {},
                   .k = {},
                   .v = {},
                   .dcontext = {}};
  if (!make_rows_map(all.q, call, call.q, call.queries, call.q_row) ||
      !make_rows_map(all.k, call, call.k, call.keys, call.kv_row) ||
      !make_rows_map(all.v, call, call.v, call.keys, call.kv_row) ||
      !make_rows_map(all.dcontext, call, call.dcontext, call.queries, std::int64_t{call.heads} * call.width)) {
    return cudaErrorInvalidValue;
  }
  const dim3 grid(static_cast<unsigned>(call.batch * call.heads), static_cast<unsigned>(call.members.count));
  kKernel<<<grid, kOnceThreads, kOnceBytes, stream>>>(all);
  return launched();
}

#else

std::int64_t attention_once_scratch(const AttentionCall&) { return 0; }
bool attention_is_once(const AttentionCall&) { return false; }
int attention_backward_hopper_once(const AttentionCall&, Stream) { return cudaErrorNotSupported; }

#endif

}  // namespace norma::cuda
