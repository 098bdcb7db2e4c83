#include <cuda_runtime.h>

#include "device/cuda/copy.h"

namespace norma::cuda {
namespace {

constexpr int kInFlight = 4;  // accesses of a thread before the first is used

__global__ void __launch_bounds__(256) copy_pieces(uint4* to, const uint4* from, std::int64_t pieces) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * blockDim.x * kInFlight + threadIdx.x;
  uint4 held[kInFlight];
#pragma unroll
  for (int i = 0; i < kInFlight; ++i) {
    if (begin + i * std::int64_t{blockDim.x} < pieces) held[i] = from[begin + i * std::int64_t{blockDim.x}];
  }
#pragma unroll
  for (int i = 0; i < kInFlight; ++i) {
    if (begin + i * std::int64_t{blockDim.x} < pieces) to[begin + i * std::int64_t{blockDim.x}] = held[i];
  }
}

}  // namespace

int copy(std::byte* to, const std::byte* from, std::int64_t bytes, Stream stream) {
  const std::int64_t pieces = bytes / 16;
  const auto blocks = static_cast<unsigned>((pieces + 256 * kInFlight - 1) / (256 * kInFlight));
  copy_pieces<<<blocks, 256, 0, stream>>>(reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from), pieces);
  return cudaGetLastError();
}

}  // namespace norma::cuda
