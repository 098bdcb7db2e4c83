// How many multiprocessors this card has, for launches whose blocks go from part to part. What decides the order of a
// sum does not ask: bits must not depend on the card.
#pragma once

#include <cuda_runtime_api.h>

namespace norma::cuda {

inline int multiprocessors() {
  static const int count = [] {
    int device = 0, found = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, device);
    return found < 1 ? 1 : found;
  }();
  return count;
}

}  // namespace norma::cuda
