#include "norma/ops/cuda_kernels.h"

#include <algorithm>

#include "norma/graph/cast_all.h"
#include "norma/graph/sum.h"
#include "norma/ops/activation.h"
#include "norma/ops/attention.h"
#include "norma/ops/attention_probe.h"
#include "norma/ops/column_sums.h"
#include "norma/ops/convolution.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/dropout.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/gradient_norm.h"
#include "norma/ops/linear.h"
#include "norma/ops/linear_slope.h"
#include "norma/ops/matmul.h"
#include "norma/ops/matmul_slope.h"
#include "norma/ops/modulate.h"
#include "norma/ops/neighbour_affine.h"
#include "norma/ops/neighbour_attention.h"
#include "norma/ops/neighbours.h"
#include "norma/ops/one_hot.h"
#include "norma/ops/optimiser.h"
#include "norma/ops/pooling.h"
#include "norma/ops/reduce.h"
#include "norma/ops/rope.h"
#include "norma/ops/scaled_add.h"
#include "norma/ops/segments.h"
#include "norma/ops/softmax.h"
#include "norma/ops/statistics.h"
#include "norma/ops/upsample.h"
#include "norma/ops/views.h"
#include "norma/ops/weight_gradients.h"
#include "ops/cuda/limits.h"

// One line per op: the function cuda_kernel that a file in cuda/ defines, and the floating dtypes that it computes, or
// moves.
#define NORMA_OPS_ON_CUDA(KERNEL)               \
  KERNEL(Accumulate, f32)                       \
  KERNEL(ActivationBackward, f32, bf16)         \
  KERNEL(ActivationOp, f32, bf16)               \
  KERNEL(AttentionProbe, f32, bf16)             \
  KERNEL(AttentionProbes, f32, bf16)            \
  KERNEL(BinaryOp, f32, bf16)                   \
  KERNEL(BroadcastTo, f32, bf16)                \
  KERNEL(Cast, f32, bf16)                       \
  KERNEL(CastAll, f32, bf16)                    \
  KERNEL(ClipScale, f32)                        \
  KERNEL(ColumnSums, f32, bf16)                 \
  KERNEL(Concat, f32, f64, bf16)                \
  KERNEL(CrossEntropy, f32)                     \
  KERNEL(CrossEntropyBackward, f32)             \
  KERNEL(Dropout, f32, bf16)                    \
  KERNEL(Embedding, f32, bf16)                  \
  KERNEL(EmbeddingBackward, f32, bf16)          \
  KERNEL(Linear, f32, bf16)                     \
  KERNEL(LinearCrossEntropy, f32, bf16)         \
  KERNEL(LinearCrossEntropyBackward, f32, bf16) \
  KERNEL(LinearCrossEntropyGradient, f32, bf16) \
  KERNEL(LinearSlope, f32, bf16)                \
  KERNEL(MatMul, f32, bf16)                     \
  KERNEL(MatMulSlope, f32, bf16)                \
  KERNEL(MaxPool, f32, bf16)                    \
  KERNEL(Modulate, f32, bf16)                   \
  KERNEL(ModulateBackward, f32, bf16)           \
  KERNEL(NeighbourAttention, f32)               \
  KERNEL(NeighbourAttentionBackward, f32)       \
  KERNEL(NeighbourMax, f32, bf16)               \
  KERNEL(NeighbourSum, f32, bf16)               \
  KERNEL(OneHot, f32)                           \
  KERNEL(Pad, f32, f64, bf16)                   \
  KERNEL(Permute, f32, f64, bf16)               \
  KERNEL(PickedRows, f32, bf16)                 \
  KERNEL(Places, f32, bf16)                     \
  KERNEL(Rope, f32, bf16)                       \
  KERNEL(ScaledAdd, f32, bf16)                  \
  KERNEL(SegmentReduce, f32)                    \
  KERNEL(Slice, f32, f64, bf16)                 \
  KERNEL(Softmax, f32)                          \
  KERNEL(SoftmaxBackward, f32)                  \
  KERNEL(SquaredSums, f32)                      \
  KERNEL(SumTo, f32, bf16)                      \
  KERNEL(SwiGlu, f32, bf16)                     \
  KERNEL(SwiGluBackward, f32, bf16)             \
  KERNEL(UnaryOp, f32, bf16)                    \
  KERNEL(Upsample, f32, bf16)                   \
  KERNEL(WeightGradients, f32, bf16)

// Those that serve some applications only; see add_ops.
#define NORMA_CHOOSY_OPS_ON_CUDA(KERNEL)                    \
  KERNEL(Attention, has_narrow_heads, f32, bf16)            \
  KERNEL(AttentionBackward, has_narrow_heads, f32, bf16)    \
  KERNEL(Conv2d, counts_in_31_bits, f32, bf16)              \
  KERNEL(Conv2dData, counts_in_31_bits, f32, bf16)          \
  KERNEL(Conv2dWeights, counts_in_31_bits, f32, bf16)       \
  KERNEL(NeighbourAffine, has_wide_scales, f32, bf16)       \
  KERNEL(NeighbourScaled, has_wide_scales, f32, bf16)       \
  KERNEL(Optimiser, reads_no_f64, f32, f64)                 \
  KERNEL(StatisticsOp, reads_no_f64, f32, f64, bf16)        \
  KERNEL(StatisticsOfSeveral, reads_no_f64, f32, f64, bf16) \
  KERNEL(Sum, has_few_terms, f32, bf16)

namespace norma {

#define NORMA_DECLARE(OpType, ...) cuda::Program cuda_kernel(const OpType& op, Types in, Types out);
NORMA_OPS_ON_CUDA(NORMA_DECLARE)
NORMA_CHOOSY_OPS_ON_CUDA(NORMA_DECLARE)
#undef NORMA_DECLARE

bool cuda_serves(const Attention& op, Types in, Types out);
bool cuda_serves(const AttentionBackward& op, Types in, Types out);
bool cuda_serves(const Conv2d& op, Types in, Types out);
bool cuda_serves(const Conv2dData& op, Types in, Types out);
bool cuda_serves(const Conv2dWeights& op, Types in, Types out);

namespace {

template <typename OpType>
bool has_narrow_heads(const OpType& op, Types in, Types out) {
  return cuda_serves(op, in, out);
}

template <typename OpType>
bool counts_in_31_bits(const OpType& op, Types in, Types out) {
  return cuda_serves(op, in, out);
}

template <typename OpType>
bool has_wide_scales(const OpType&, Types in, Types out) {
  const Types scales = in.subspan(2);
  return in[0].dtype == out[0].dtype &&
         std::all_of(scales.begin(), scales.end(), [](const Type& scale) { return scale.dtype == DType::f32; });
}

// Results are f64, arithmetic is not.
template <typename OpType>
bool reads_no_f64(const OpType&, Types in, Types) {
  return std::none_of(in.begin(), in.end(), [](const Type& type) { return type.dtype == DType::f64; });
}

template <typename OpType>
bool has_few_terms(const OpType&, Types in, Types out) {
  const bool all_narrow = std::all_of(in.begin(), in.end(), [](const Type& type) { return type.dtype == DType::bf16; });
  return in.size() <= kMostSumTerms && (out[0].dtype == DType::bf16) == all_narrow;
}

}  // namespace

void add_ops(CudaBackend& cuda) {
  using enum DType;
#define NORMA_ADD(OpType, ...) cuda.kernels().add<OpType>(cuda_kernel, {__VA_ARGS__});
  NORMA_OPS_ON_CUDA(NORMA_ADD)
#undef NORMA_ADD
#define NORMA_ADD(OpType, serves, ...) cuda.kernels().add<OpType>(cuda_kernel, {__VA_ARGS__}, serves<OpType>);
  NORMA_CHOOSY_OPS_ON_CUDA(NORMA_ADD)
#undef NORMA_ADD
}

}  // namespace norma
