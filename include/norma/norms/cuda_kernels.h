// The kernels of this folder on NVIDIA GPUs.
#pragma once

#include "norma/device/cuda/backend.h"

namespace norma {

void add_norms(CudaBackend& cuda);

// norm_lines: partial sums of dgain and dbias are added up together with other sums over rows. After column_sums.
std::vector<Rewrite> norm_line_fusions();
// gathered_total_lines: so are those of the stream's gradient, where biases do not ride beside gradients of weights.
// After bias_fusions.
std::vector<Rewrite> norm_total_fusions();

}  // namespace norma
