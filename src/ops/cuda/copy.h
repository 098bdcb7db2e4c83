// Rows of bytes copied from one tensor of a member to another.
#pragma once

#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

struct RowCopy {
  Members members = {};
  std::int64_t rows = 0;
  std::int64_t bytes = 0;  // of a row
  std::int64_t in = 0, in_stride = 0;
  std::int64_t out = 0, out_stride = 0;
};
int copy_rows(const RowCopy& copy, Stream stream);

}  // namespace norma::cuda
