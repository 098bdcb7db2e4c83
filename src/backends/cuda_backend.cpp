#include "norma/backends/cuda.h"
#include "norma/norms/channel.h"
#include "norma/norms/cuda_kernels.h"
#include "norma/norms/fusions.h"
#include "norma/norms/neighbour_norm.h"
#include "norma/ops/column_sums.h"
#include "norma/ops/convolution.h"
#include "norma/ops/cuda_kernels.h"
#include "norma/ops/fusions.h"
#include "norma/ops/matmul.h"
#include "norma/ops/reduce.h"
#include "norma/ops/weight_gradients.h"

namespace norma {
namespace {

// Gradients of weights and biases are read by the optimiser alone, running statistics by nobody: they run beside the
// chain that the rest of the step is.
int lane_of(const Op& op, Types in, Types out) {
  if (const auto* product = dynamic_cast<const MatMul*>(&op)) return product->product() == Product::reduce_rows ? 1 : 0;
  if (dynamic_cast<const ColumnSums*>(&op) != nullptr || dynamic_cast<const Conv2dWeights*>(&op) != nullptr ||
      dynamic_cast<const RunningUpdate*>(&op) != nullptr || dynamic_cast<const WeightGradients*>(&op) != nullptr) {
    return 1;
  }
  if (dynamic_cast<const SumTo*>(&op) == nullptr) return 0;
  const Shape& sums = out[0].shape;
  return sums.rank() == 1 && sums.elements() == in[0].shape.channels() && in[0].shape.rows() > 1 ? 1 : 0;
}

}  // namespace

const CudaBackend& cuda_backend() {
  static const CudaBackend backend = [] {
    CudaBackend cuda;
    add_ops(cuda);
    add_norms(cuda);
    cuda.add(channel_norm_fusions());
    cuda.add(norm_fusions());
    cuda.add(norm_scale_fusions());
    cuda.add(norm_relu_fusions());
    cuda.add(neighbour_fusions());
    cuda.add(neighbour_norm_fusions());
    cuda.add(op_fusions());
    cuda.add(embedding_fusions());
    cuda.add(gradient_fusions());
    cuda.add(probe_fusions());
    cuda.add(norm_line_fusions());
    cuda.add(bias_fusions());
    cuda.add(norm_total_fusions());
    cuda.set_rewrites_of_lean(lean_fusions());
    cuda.set_lanes(lane_of);
    return cuda;
  }();
  return backend;
}

}  // namespace norma
