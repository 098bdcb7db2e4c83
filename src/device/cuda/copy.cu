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

__global__ void gather_words(std::uint32_t* to, Members members, std::int64_t offset, std::int64_t words) {
  const std::int64_t member = blockIdx.y, i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= words) return;
  to[member * words + i] = reinterpret_cast<const std::uint32_t*>(members.base + member * members.stride + offset)[i];
}

}  // namespace

int gather(std::byte* to, const Members& members, std::int64_t offset, std::int64_t bytes, Stream stream) {
  const std::int64_t words = bytes / 4;
  const dim3 grid(static_cast<unsigned>((words + 255) / 256), static_cast<unsigned>(members.count));
  gather_words<<<grid, 256, 0, stream>>>(reinterpret_cast<std::uint32_t*>(to), members, offset, words);
  return cudaGetLastError();
}

int copy(std::byte* to, const std::byte* from, std::int64_t bytes, Stream stream) {
  const std::int64_t pieces = bytes / 16;
  const auto blocks = static_cast<unsigned>((pieces + 256 * kInFlight - 1) / (256 * kInFlight));
  copy_pieces<<<blocks, 256, 0, stream>>>(reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from), pieces);
  return cudaGetLastError();
}

}  // namespace norma::cuda
