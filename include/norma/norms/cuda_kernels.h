// The kernels of this folder on NVIDIA GPUs.
#pragma once

#include "norma/device/cuda/backend.h"

namespace norma {

void add_norms(CudaBackend& cuda);

}  // namespace norma
