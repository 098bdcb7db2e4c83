#include "norma/norms/cpu_kernels.h"

#include "norma/norms/channel.h"
#include "norma/norms/dyt.h"
#include "norma/norms/row.h"

// One line per op: the function cpu_kernel that its own file defines, and the floating dtypes that it computes.
#define NORMA_NORMS_ON_CPU(KERNEL) \
  KERNEL(DyT, f32, f64)            \
  KERNEL(DyTBackward, f32, f64)    \
  KERNEL(RunningUpdate, f32, f64)

// Those that serve some applications only.
#define NORMA_CHOOSY_NORMS_ON_CPU(KERNEL)           \
  KERNEL(ChannelNorm, has_nothing_behind, f32, f64) \
  KERNEL(ChannelNormBackward, has_nothing_behind, f32, f64)

namespace norma {

#define NORMA_DECLARE(OpType, ...) CpuKernel cpu_kernel(const OpType& op, Types in, Types out);
NORMA_NORMS_ON_CPU(NORMA_DECLARE)
NORMA_CHOOSY_NORMS_ON_CPU(NORMA_DECLARE)
#undef NORMA_DECLARE
CpuKernel cpu_kernel(const RowNorm& op, Types in, Types out);
CpuKernel cpu_kernel(const RowNormBackward& op, Types in, Types out);

namespace {

template <typename OpType>
bool has_nothing_behind(const OpType& op, Types, Types) {
  return !op.options().adds && !op.options().relu;
}

}  // namespace

void add_norms(CpuBackend& cpu) {
  using enum DType;
#define NORMA_ADD(OpType, ...) cpu.add<OpType>(cpu_kernel, {__VA_ARGS__});
  NORMA_NORMS_ON_CPU(NORMA_ADD)
#undef NORMA_ADD
#define NORMA_ADD(OpType, serves, ...) cpu.add<OpType>(cpu_kernel, {__VA_ARGS__}, serves<OpType>);
  NORMA_CHOOSY_NORMS_ON_CPU(NORMA_ADD)
#undef NORMA_ADD
  cpu.add<RowNorm>(cpu_kernel, {f32, f64}, [](const RowNorm& op, Types, Types) { return !op.options().relu; });
  cpu.add<RowNormBackward>(cpu_kernel, {f32, f64},
                           [](const RowNormBackward& op, Types, Types) { return op.lines() == 0; });
}

}  // namespace norma
