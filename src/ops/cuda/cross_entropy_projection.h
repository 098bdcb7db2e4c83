// Logits of an output projection with few classes, their loss and what goes back through the projection, in one launch:
// logits are never in memory, only their gradients, which the weight's gradient is made of.
#pragma once

#include "ops/cuda/cross_entropy_rows.h"

namespace norma::cuda {

struct ProjectedRows {
  CrossEntropyRows rows;   // bf16; gradients go where its logits would be
  std::int64_t width = 0;  // of x
  bool transposed = false;
  std::int64_t x = 0;       // [rows, width]
  std::int64_t weight = 0;  // [width, classes], or transposed [classes, width]
  std::int64_t dx = 0;      // [rows, width]
};

// Whether sizes, offsets and the current device suit it.
bool fits(const ProjectedRows& call);

// As row_losses_and_gradients. Enqueues one kernel; 0 or a cudaError_t.
int projected_losses_and_gradients(const ProjectedRows& call, std::int64_t losses, std::int64_t scale, Stream stream);

}  // namespace norma::cuda
