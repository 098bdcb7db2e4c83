// Copies by kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

// Of whole 16 bytes: faster than the runtime's own, and so the better limit. Both enqueue; 0 or a cudaError_t.
int copy(std::byte* to, const std::byte* from, std::int64_t bytes, Stream stream);

// The same piece of every member, one after another. Bytes are a multiple of 4.
int gather(std::byte* to, const Members& members, std::int64_t offset, std::int64_t bytes, Stream stream);

}  // namespace norma::cuda
