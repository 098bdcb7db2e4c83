#include "norma/backends/cpu.h"

#include "norma/device/cpu/backend.h"
#include "norma/norms/cpu_kernels.h"
#include "norma/norms/fusions.h"
#include "norma/ops/cpu_kernels.h"
#include "norma/ops/fusions.h"

namespace norma {

const CpuBackend& cpu_backend() {
  static const CpuBackend backend = [] {
    CpuBackend cpu;
    add_ops(cpu);
    add_norms(cpu);
    // Norms first: a sum that can become part of a norm saves more than one that becomes part of a product.
    cpu.add(norm_fusions());
    cpu.add(norm_scale_fusions());
    cpu.add(neighbour_fusions());
    cpu.add(op_fusions());
    return cpu;
  }();
  return backend;
}

}  // namespace norma
