// What kernels share that keep parts of images with their borders in shared memory.
#pragma once

#include "ops/cuda/attention_math.cuh"
#include "ops/cuda/convolution_halo.h"

namespace norma::cuda::halo {

constexpr int kTaps = 9;
constexpr int kGroups = kHaloPixels / 16;  // of 16 pixels, which a product takes at once

// Where a chunk of 8 channels of a pixel lies, in bytes: permuted so that the same chunk of 8 pixels that follow each
// other lies in different banks.
template <int kChunks>
__device__ __forceinline__ int place_of(int pixel, int chunk) {
  constexpr int kTogether = 8 / kChunks;  // pixels of 128 bytes
  return (pixel * kChunks + (chunk ^ (pixel / kTogether & (kChunks - 1)))) * 16;
}

__device__ __forceinline__ void copy_chunk(unsigned char* to, const void* from, bool has) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(attention::shared_address(to)), "l"(from),
               "r"(has ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

inline int launch(void (*kernel)(HaloCall), const HaloCall& call, int blocks, int threads, int bytes, Stream stream) {
  if (bytes > 48 * 1024) {
    const int error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != 0) return error;
  }
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(call.members.count));
  kernel<<<grid, threads, bytes, stream>>>(call);
  return launched();
}

}  // namespace norma::cuda::halo
