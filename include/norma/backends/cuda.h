// Where the kernels of all folders come together: the GPU with everything it has. Only in builds with CUDA.
#pragma once

#include "norma/device/cuda/backend.h"

namespace norma {

const CudaBackend& cuda_backend();

}  // namespace norma
