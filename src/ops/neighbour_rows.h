// Sums over neighbours in kernels: y[i] = left[i] * sum over the edges (i, j) of right[j] x[j] + bias, and an
// activation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "norma/device/cpu/backend.h"
#include "norma/ops/activation.h"

namespace norma {

// What one call works on; null where there is none.
template <typename T>
struct NeighbourRows {
  const T* x;                     // [nodes, width]
  const std::int32_t *from, *to;  // pairs, sorted by `from`
  std::int64_t nodes, count;      // of nodes, of pairs
  std::int64_t width;
  const T *left, *right, *bias;  // [nodes], [nodes], [width]
  T* y;                          // [nodes, width]
};

// Which input of an op is which, behind x and edges; -1: there is none. With an activation output 1 is what it was
// given.
struct NeighbourInputs {
  int left = -1, right = -1, bias = -1;
  Activation activation = Activation::none;
};
CpuKernel neighbour_kernel(Types in, const NeighbourInputs& which);

}  // namespace norma
