#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "device/cuda/finite.h"

namespace norma::cuda {
namespace {

__device__ bool is_bad(float x) { return !isfinite(x); }
__device__ bool is_bad(double x) { return !isfinite(x); }
__device__ bool is_bad(__nv_bfloat16 x) { return !isfinite(__bfloat162float(x)); }

template <typename T>
__global__ void search(const T* data, std::int64_t count, unsigned long long* found) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    if (!is_bad(data[i])) continue;
    atomicMin(found, static_cast<unsigned long long>(i));
    return;
  }
}

template <typename T>
void launch(const std::byte* data, std::int64_t count, std::int64_t* found, Stream stream) {
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((count + 255) / 256, 1024));
  search<<<blocks, 256, 0, stream>>>(reinterpret_cast<const T*>(data), count,
                                     reinterpret_cast<unsigned long long*>(found));
}

}  // namespace

int find_non_finite(const std::byte* data, const Type& type, std::int64_t* found, Stream stream) {
  if (const cudaError_t error = cudaMemsetAsync(found, 0x7f, sizeof *found, stream)) return error;
  const std::int64_t count = type.shape.elements();
  switch (type.dtype) {
    case DType::f32: launch<float>(data, count, found, stream); break;
    case DType::f64: launch<double>(data, count, found, stream); break;
    case DType::bf16: launch<__nv_bfloat16>(data, count, found, stream); break;
    case DType::i32: break;
  }
  return cudaGetLastError();
}

}  // namespace norma::cuda
