// How the backward pass of a row norm splits its rows: into lines of partial sums, by shape and the number of members.
#pragma once

#include <cstdint>

#include "norms/cuda/row_group.cuh"
#include "norms/cuda/row_launch.h"

namespace norma::cuda {

constexpr std::int64_t kWidestBackward = 8192;  // of row_backward_kernel

// Where a row stays between the sums over it and their use: threads that hold less are more at once.
enum class Hold { registers, stage };

// Whether dx is summed over rows where it is made.
enum class DxSums { none, lines };

// Of a block of row_backward_kernel: as many as there are registers for.
constexpr int most_backward_threads(int pieces, Hold hold) {
  if (pieces == 1) return 1024;
  return hold == Hold::stage && pieces == 2 ? 640 : 512;
}

// Of row_backward_kernel: one line per block.
struct BackwardLines {
  int pieces = 0;  // per thread
  Hold hold = Hold::registers;
  RowMap map;
  std::int64_t count = 0;
};
// No more than for one member.
BackwardLines backward_lines(RowTypes types, std::int64_t rows, std::int64_t width, int residuals, int members = 1);

// Of column_sums_kernel.
std::int64_t general_lines(std::int64_t rows, std::int64_t width);

}  // namespace norma::cuda
