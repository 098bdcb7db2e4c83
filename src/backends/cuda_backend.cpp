#include "norma/backends/cuda.h"
#include "norma/norms/cuda_kernels.h"
#include "norma/norms/fusions.h"
#include "norma/ops/cuda_kernels.h"
#include "norma/ops/fusions.h"

namespace norma {

const CudaBackend& cuda_backend() {
  static const CudaBackend backend = [] {
    CudaBackend cuda;
    add_ops(cuda);
    add_norms(cuda);
    cuda.add(norm_fusions());
    cuda.add(op_fusions());
    return cuda;
  }();
  return backend;
}

}  // namespace norma
