// The kernels of this folder on NVIDIA GPUs.
#pragma once

#include "norma/device/cuda/backend.h"

namespace norma {

void add_norms(CudaBackend& cuda);

// norm_lines: partial sums of dgain and dbias are added up together with other sums over rows. After column_sums.
std::vector<Rewrite> norm_line_fusions();

}  // namespace norma
