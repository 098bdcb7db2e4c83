// Copies to shared memory that go on while their thread does other things.
#pragma once

#include <cuda_runtime.h>

namespace norma::cuda {

// Both addresses are multiples of 16.
__device__ __forceinline__ void copy_16_bytes(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}

// All copies of this thread have arrived; a barrier makes those of others visible.
__device__ __forceinline__ void wait_for_16_byte_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace norma::cuda
