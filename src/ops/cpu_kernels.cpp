#include "norma/ops/cpu_kernels.h"

#include "norma/graph/sum.h"
#include "norma/ops/activation.h"
#include "norma/ops/attention.h"
#include "norma/ops/attention_probe.h"
#include "norma/ops/convolution.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/dropout.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/gradient_norm.h"
#include "norma/ops/linear.h"
#include "norma/ops/matmul.h"
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
#include "norma/ops/sparse_product.h"
#include "norma/ops/statistics.h"
#include "norma/ops/upsample.h"
#include "norma/ops/views.h"

// One line per op: the function cpu_kernel that its own file defines, and the floating dtypes that it computes.
#define NORMA_OPS_ON_CPU(KERNEL)               \
  KERNEL(Accumulate, f32, f64)                 \
  KERNEL(ActivationBackward, f32, f64)         \
  KERNEL(ActivationOp, f32, f64)               \
  KERNEL(Attention, f32, f64)                  \
  KERNEL(AttentionBackward, f32, f64)          \
  KERNEL(AttentionProbe, f32, f64)             \
  KERNEL(BinaryOp, f32, f64)                   \
  KERNEL(BroadcastTo, f32, f64)                \
  KERNEL(Cast, f32, f64, bf16)                 \
  KERNEL(ClipScale, f32, f64)                  \
  KERNEL(Concat, f32, f64, bf16)               \
  KERNEL(Conv2d, f32)                          \
  KERNEL(Conv2dData, f32)                      \
  KERNEL(Conv2dWeights, f32)                   \
  KERNEL(CrossEntropy, f32, f64)               \
  KERNEL(CrossEntropyBackward, f32, f64)       \
  KERNEL(Dropout, f32, f64)                    \
  KERNEL(Embedding, f32, f64)                  \
  KERNEL(EmbeddingBackward, f32, f64)          \
  KERNEL(Linear, f32, f64)                     \
  KERNEL(LinearCrossEntropy, f32, f64)         \
  KERNEL(LinearCrossEntropyBackward, f32, f64) \
  KERNEL(MatMul, f32, f64)                     \
  KERNEL(MaxPool, f32, f64)                    \
  KERNEL(Modulate, f32, f64)                   \
  KERNEL(ModulateBackward, f32, f64)           \
  KERNEL(NeighbourAffine, f32, f64)            \
  KERNEL(NeighbourAttention, f32, f64)         \
  KERNEL(NeighbourAttentionBackward, f32, f64) \
  KERNEL(NeighbourMax, f32, f64)               \
  KERNEL(NeighbourScaled, f32, f64)            \
  KERNEL(NeighbourSum, f32, f64)               \
  KERNEL(OneHot, f32, f64)                     \
  KERNEL(Optimiser, f32, f64)                  \
  KERNEL(Pad, f32, f64, bf16)                  \
  KERNEL(Permute, f32, f64, bf16)              \
  KERNEL(PickedRows, f32, f64)                 \
  KERNEL(Places, f32, f64)                     \
  KERNEL(Rope, f32, f64)                       \
  KERNEL(ScaledAdd, f32, f64)                  \
  KERNEL(SegmentReduce, f32, f64)              \
  KERNEL(Slice, f32, f64, bf16)                \
  KERNEL(Softmax, f32, f64)                    \
  KERNEL(SoftmaxBackward, f32, f64)            \
  KERNEL(SparseGradient, f32, f64)             \
  KERNEL(SparseProduct, f32, f64)              \
  KERNEL(SquaredSums, f32, f64)                \
  KERNEL(StatisticsOp, f32, f64)               \
  KERNEL(Sum, f32, f64)                        \
  KERNEL(SumTo, f32, f64)                      \
  KERNEL(SwiGlu, f32, f64)                     \
  KERNEL(SwiGluBackward, f32, f64)             \
  KERNEL(UnaryOp, f32, f64)                    \
  KERNEL(Upsample, f32, f64)

namespace norma {

#define NORMA_DECLARE(OpType, ...) CpuKernel cpu_kernel(const OpType& op, Types in, Types out);
NORMA_OPS_ON_CPU(NORMA_DECLARE)
#undef NORMA_DECLARE

void add_ops(CpuBackend& cpu) {
  using enum DType;
#define NORMA_ADD(OpType, ...) cpu.add<OpType>(cpu_kernel, {__VA_ARGS__});
  NORMA_OPS_ON_CPU(NORMA_ADD)
#undef NORMA_ADD
}

}  // namespace norma
