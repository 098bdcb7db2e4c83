// Adding up lines of partial sums in their order.
#pragma once

#include <algorithm>

#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

// to[b][i] = the sum over lines of from[b][line][i], for b below batch and i below width; all f32
struct FoldCall {
  Members members = {};
  std::int64_t from = 0, to = 0;
  std::int64_t lines = 0;
  std::int64_t width = 0;
  std::int64_t batch = 1;
};
int fold_lines(const FoldCall& call, Stream stream);

// How many parts rows are split into, each summed to a line by blocks of its own, where every part needs so many
// blocks: enough blocks for the device, and rows enough for a block.
inline std::int64_t line_parts(std::int64_t blocks, std::int64_t rows) {
  return std::clamp<std::int64_t>(rows / 64, 1, std::max<std::int64_t>(1, 1024 / blocks));
}

}  // namespace norma::cuda
