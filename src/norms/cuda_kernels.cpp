#include "norma/norms/cuda_kernels.h"

#include <algorithm>

#include "norma/norms/channel.h"
#include "norma/norms/dyt.h"
#include "norma/norms/neighbour_norm.h"
#include "norma/norms/row.h"
#include "norms/cuda/channel_apply.h"

// One line per op: the function cuda_kernel that a file in cuda/ defines, and the floating dtypes that it computes.
#define NORMA_NORMS_ON_CUDA(KERNEL) \
  KERNEL(DyT, f32)                  \
  KERNEL(DyTBackward, f32)          \
  KERNEL(RunningUpdate, f32)

// Those that serve some mixtures of widths only; see cuda_serves.
#define NORMA_MIXED_NORMS_ON_CUDA(KERNEL) \
  KERNEL(ChannelNorm, f32, bf16)          \
  KERNEL(ChannelNormBackward, f32, bf16)  \
  KERNEL(NeighbourNorm, f32, bf16)        \
  KERNEL(RowNorm, f32, bf16)              \
  KERNEL(RowNormBackward, f32, bf16)

namespace norma {

#define NORMA_DECLARE(OpType, ...) cuda::Program cuda_kernel(const OpType& op, Types in, Types out);
NORMA_NORMS_ON_CUDA(NORMA_DECLARE)
NORMA_MIXED_NORMS_ON_CUDA(NORMA_DECLARE)
#undef NORMA_DECLARE

namespace {

bool is_narrow(const Type& type) { return type.dtype == DType::bf16; }

bool cuda_serves(const ChannelNorm& op, Types in, Types out) {
  const Types others = in.subspan(1, in.size() - (op.options().adds ? 2 : 1));
  return channel_mixture(is_narrow(in[0]), is_narrow(out[0])) &&
         std::none_of(others.begin(), others.end(), is_narrow) &&
         (!op.options().adds || is_narrow(in.back()) == is_narrow(out[0]));
}

bool cuda_serves(const ChannelNormBackward&, Types in, Types out) {
  return channel_mixture(is_narrow(in[0]), is_narrow(in[1])) && is_narrow(out[0]) == is_narrow(in[0]) &&
         std::none_of(in.begin() + 2, in.end(), is_narrow);
}

// A narrow stream makes all narrow. Otherwise further terms have one width, and are narrow where y is written narrow.
bool cuda_serves(const RowNorm& op, Types in, Types out) {
  const Types terms = in.first(static_cast<std::size_t>(op.terms())), further = terms.subspan(1);
  if (is_narrow(in[0])) return !op.twin() && std::all_of(terms.begin(), terms.end(), is_narrow) && is_narrow(out[0]);
  const bool all = std::all_of(further.begin(), further.end(), is_narrow);
  return all || (std::none_of(further.begin(), further.end(), is_narrow) && !op.twin() && !is_narrow(out[0]));
}

// The rows that are added up have any width, and so has the stream; y is narrow where the stream is.
bool cuda_serves(const NeighbourNorm& op, Types in, Types out) {
  const auto stream = static_cast<std::size_t>(op.stream());
  const Types scales = in.subspan(2, stream - 2), parameters = in.subspan(stream + 1);
  const Types statistics = out.subspan(1, out.size() - 3);
  return std::none_of(scales.begin(), scales.end(), is_narrow) &&
         std::none_of(parameters.begin(), parameters.end(), is_narrow) &&
         std::none_of(statistics.begin(), statistics.end(), is_narrow) &&
         is_narrow(out[out.size() - 2]) == is_narrow(in[stream]) && is_narrow(out.back()) == is_narrow(in[0]) &&
         (!is_narrow(in[stream]) || is_narrow(out[0]));
}

bool cuda_serves(const RowNormBackward& op, Types in, Types out) {
  return !is_narrow(in[0]) || (!op.twin() && is_narrow(in[1]) && is_narrow(out[0]));
}

}  // namespace

void add_norms(CudaBackend& cuda) {
  using enum DType;
#define NORMA_ADD(OpType, ...) cuda.kernels().add<OpType>(cuda_kernel, {__VA_ARGS__});
  NORMA_NORMS_ON_CUDA(NORMA_ADD)
#undef NORMA_ADD
#define NORMA_ADD(OpType, ...) cuda.kernels().add<OpType>(cuda_kernel, {__VA_ARGS__}, cuda_serves);
  NORMA_MIXED_NORMS_ON_CUDA(NORMA_ADD)
#undef NORMA_ADD
}

}  // namespace norma
