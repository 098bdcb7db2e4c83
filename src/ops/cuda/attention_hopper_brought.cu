// Attention of long sequences in tiles that the copy engine brings; see attention_hopper.h.
#include <limits>

#include "ops/cuda/attention_hopper.h"

#ifdef NORMA_SM90A
#include "ops/cuda/attention_hopper_brought.cuh"
#include "ops/cuda/hopper_product_launch.cuh"
#endif

namespace norma::cuda {

#ifdef NORMA_SM90A

namespace attention {
namespace {

// [member, sample, row, column] of one of the tensors, where rows of a time step are `row` elements apart.
bool make_rows_map(CUtensorMap& map, const AttentionCall& call, std::int64_t offset, int heads, int rows,
                   std::int64_t row) {
  const std::int64_t step = row * static_cast<std::int64_t>(sizeof(HopperTile)), sample = step * rows;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(heads) * kSide, static_cast<cuuint64_t>(rows),
                              static_cast<cuuint64_t>(call.batch), static_cast<cuuint64_t>(call.members.count)};
  const cuuint64_t strides[] = {
      static_cast<cuuint64_t>(step), static_cast<cuuint64_t>(sample),
      static_cast<cuuint64_t>(call.members.count > 1 ? call.members.stride : sample * call.batch)};
  const cuuint32_t box[] = {kSide, kSide, 1, 1}, every[] = {1, 1, 1, 1};
  return product::map_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, call.members.base + offset, sizes, strides,
                                box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

int launch_brought_forward(const AttentionCall& call, Stream stream) {
  constexpr auto kKernel = hopper_brought_forward_kernel<Bf16Math>;
  constexpr int kShared = kBroughtTiles * kTileBytes + 1024;
  static_assert(kShared >= (kBroughtRows + 4 * 16) * stride_of<HopperTile>(kSide) * 2);  // of the careful way
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  if (allowed != cudaSuccess) return allowed;
  BroughtForward all{.call = call, .from_the_end = call.members.stride < 0};
  all.call.members = in_order(call.members);
  all.blocks = static_cast<int>(divide_up(call.queries, kBroughtRows));
  all.turns = call.members.count * call.batch * call.heads * all.blocks;
  if (!make_rows_map(all.q, all.call, call.q, call.heads, call.queries, call.q_row) ||
      !make_rows_map(all.k, all.call, call.k, call.kv_heads, call.keys, call.kv_row) ||
      !make_rows_map(all.v, all.call, call.v, call.kv_heads, call.keys, call.kv_row))
    return cudaErrorInvalidValue;
  const int blocks =
      std::min(all.turns, std::max(multiprocessors(), static_cast<int>(divide_up(all.turns, kMostTurns))));
  kKernel<<<static_cast<unsigned>(blocks), kBroughtThreads, kShared, stream>>>(all);
  return launched();
}

}  // namespace
}  // namespace attention

// Rows of keys that are there but hidden by a length would be multiplied by 0, which NaN survive.
bool attention_is_brought(const AttentionCall& call) {
  const std::int64_t blocks =
      std::int64_t{call.members.count} * call.batch * call.heads * divide_up(call.queries, attention::kBroughtRows);
  return call.width == attention::kSide && call.lengths < 0 && call.scale > 0.0f && call.members.stride % 16 == 0 &&
         blocks < std::numeric_limits<int>::max() / 2 && product::map_encoder() != nullptr;
}

int attention_forward_hopper_brought(const AttentionCall& call, Stream stream) {
  return attention::launch_brought_forward(call, stream);
}

#else

bool attention_is_brought(const AttentionCall&) { return false; }
int attention_forward_hopper_brought(const AttentionCall&, Stream) { return cudaErrorNotSupported; }

#endif

}  // namespace norma::cuda
