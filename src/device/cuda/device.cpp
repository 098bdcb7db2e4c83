#include "norma/device/cuda/device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "device/cuda/check.h"

namespace norma::cuda {
namespace {

constexpr int kOldestMajor = 8;  // Ampere: asynchronous copies and bf16 products

Presence unusable(std::string why_not) { return {.usable = false, .name = "", .why_not = std::move(why_not)}; }

Presence find() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) return unusable("no NVIDIA driver is installed");
    return unusable(fmt::format("the NVIDIA driver knows CUDA {}.{} and this program needs {}.{}", driver / 1000,
                                driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10));
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && devices == 0))
    return unusable("no NVIDIA GPU is visible to this process");
  if (error != cudaSuccess) return unusable(fmt::format("CUDA reports {}", cudaGetErrorString(error)));
  cudaDeviceProp properties{};
  if (const cudaError_t failed = cudaGetDeviceProperties(&properties, 0); failed != cudaSuccess)
    return unusable(fmt::format("the GPU does not answer: {}", cudaGetErrorString(failed)));
  if (properties.major < kOldestMajor) {
    return unusable(fmt::format("{} has compute capability {}.{}; {}.0 is the oldest that is supported",
                                properties.name, properties.major, properties.minor, kOldestMajor));
  }
  return {.usable = true, .name = properties.name, .why_not = ""};
}

}  // namespace

const Presence& presence() {
  static const Presence found = find();
  return found;
}

Memory memory() {
  std::size_t free_bytes = 0, total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking the GPU for its free memory");
  return {static_cast<std::int64_t>(free_bytes), static_cast<std::int64_t>(total_bytes)};
}

}  // namespace norma::cuda
