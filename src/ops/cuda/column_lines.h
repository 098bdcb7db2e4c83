// Lines of partial sums over the rows of one tensor.
#pragma once

#include <cstdint>

#include "norma/core/dtype.h"
#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

// Offsets are in bytes from a member's base. Each line has an even part of the rows, or none and is zero.
struct ColumnLines {
  Members members;
  DType type = DType::f32;           // of x: f32 or bf16
  std::int64_t rows = 0, width = 0;  // of x
  std::int64_t x = 0, lines = 0;     // [rows, width]; f32 [count, width]
  std::int64_t count = 0;
};
int column_lines(const ColumnLines& call, Stream stream);  // enqueues; 0 or a cudaError_t

}  // namespace norma::cuda
