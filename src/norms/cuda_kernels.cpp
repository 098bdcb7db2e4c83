#include "norma/norms/cuda_kernels.h"

#include "norma/norms/channel.h"
#include "norma/norms/dyt.h"
#include "norma/norms/row.h"

// One line per op: the function cuda_kernel that a file in cuda/ defines, and the floating dtypes that it computes.
#define NORMA_NORMS_ON_CUDA(KERNEL) \
  KERNEL(ChannelNorm, f32)          \
  KERNEL(ChannelNormBackward, f32)  \
  KERNEL(DyT, f32)                  \
  KERNEL(DyTBackward, f32)          \
  KERNEL(RowNorm, f32)              \
  KERNEL(RowNormBackward, f32)      \
  KERNEL(RunningUpdate, f32)

namespace norma {

#define NORMA_DECLARE(OpType, ...) cuda::Program cuda_kernel(const OpType& op, Types in, Types out);
NORMA_NORMS_ON_CUDA(NORMA_DECLARE)
#undef NORMA_DECLARE

void add_norms(CudaBackend& cuda) {
  using enum DType;
#define NORMA_ADD(OpType, ...) cuda.kernels().add<OpType>(cuda_kernel, {__VA_ARGS__});
  NORMA_NORMS_ON_CUDA(NORMA_ADD)
#undef NORMA_ADD
}

}  // namespace norma
