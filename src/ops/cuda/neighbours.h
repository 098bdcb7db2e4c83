// What kernels of sums over neighbours are told: y[i] = left[i] * sum of right[j] x[j] over the edges (i, j), + bias.
#pragma once

#include <cstdint>

#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

struct NeighbourCall {
  Members members = {};
  std::int64_t x = 0, edges = 0, y = 0;          // x and y: [nodes, width]
  std::int64_t left = kAbsent, right = kAbsent;  // [nodes], f32: of the sum, and of what is added
  std::int64_t bias = kAbsent;                   // [width], f32
  std::int64_t nodes = 0, width = 0, count = 0;
  bool relu = false;  // of the result
};

// A block holds some channels of all nodes in shared memory, so that x is read once. The order of every sum is that of
// the general kernel, and so are its bits: which of the two runs may depend on the number of members.
bool holds_neighbours(const NeighbourCall& call, std::int64_t element_bytes);
int run_held_neighbours_f32(const NeighbourCall& call, Stream stream);
int run_held_neighbours_bf16(const NeighbourCall& call, Stream stream);

}  // namespace norma::cuda
