#include "device/cuda/check.h"

#include <cuda_runtime_api.h>

#include "norma/core/error.h"

namespace norma::cuda {

void check(int code, std::string_view doing) {
  const auto error = static_cast<cudaError_t>(code);
  if (error == cudaSuccess) return;
  switch (error) {
    case cudaErrorMemoryAllocation: fail("{}: the GPU is out of memory", doing);
    case cudaErrorInsufficientDriver:
      fail("{}: the NVIDIA driver is older than this program needs; update it, or use --device=cpu", doing);
    case cudaErrorNoDevice: fail("{}: there is no NVIDIA GPU here; use --device=cpu", doing);
    case cudaErrorDevicesUnavailable:
      fail("{}: the GPU is in use by another process and not shared; wait for it, or use --device=cpu", doing);
    default: fail("{}: CUDA reports {} ({})", doing, cudaGetErrorName(error), cudaGetErrorString(error));
  }
}

}  // namespace norma::cuda
