// Adding up lines of partial sums in their order.
#pragma once

#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

// to[i] = the sum over lines of from[line * stride + i], i below width; all f32
struct FoldCall {
  Members members = {};
  std::int64_t from = 0, to = 0;
  std::int64_t lines = 0, stride = 0;  // in floats
  std::int64_t width = 0;
};
int fold_lines(const FoldCall& call, Stream stream);

}  // namespace norma::cuda
