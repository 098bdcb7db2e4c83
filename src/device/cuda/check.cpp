#include "device/cuda/check.h"

#include <cuda_runtime_api.h>

#include "device/gpu_failure.h"
#include "norma/core/error.h"

namespace norma::cuda {

static_assert(cudaErrorMemoryAllocation == kGpuOutOfMemory && cudaErrorInsufficientDriver == kGpuOldDriver &&
              cudaErrorDevicesUnavailable == kGpuInUse && cudaErrorNoDevice == kGpuNone);
static_assert(cudaErrorECCUncorrectable == 214 && cudaErrorLaunchTimeout == 702 && cudaErrorLaunchFailure == 719 &&
              cudaErrorUnknown == 999);

void check(int code, std::string_view doing) {
  const auto error = static_cast<cudaError_t>(code);
  if (error != cudaSuccess) fail("{}", gpu_failure(code, doing, cudaGetErrorName(error), cudaGetErrorString(error)));
}

}  // namespace norma::cuda
