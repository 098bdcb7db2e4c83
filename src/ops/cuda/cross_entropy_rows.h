// Softmax cross-entropy of rows of logits on a GPU: the launches under both the loss of logits and the loss of an
// output projection in chunks of rows. Each enqueues one kernel and returns 0 or a cudaError_t. Semantics are those of
// norma/ops/cross_entropy.h.
#pragma once

#include <cstdint>

#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

// Offsets are in bytes from a member's base.
struct CrossEntropyRows {
  Members members;
  std::int64_t rows = 0, classes = 0;
  std::int32_t ignore = 0;
  bool narrow = false;         // logits and their gradients are bf16, else f32
  std::int64_t logits = 0;     // [rows, classes]
  std::int64_t targets = 0;    // i32 [rows]
  std::int64_t smoothing = 0;  // f32 [1]
  std::int64_t lse = 0;        // f32 [rows]
};

// losses f32 [rows], 0 where the target is ignored, and lse.
int row_losses(const CrossEntropyRows& call, std::int64_t losses, Stream stream);

// dlogits = scale (softmax - wanted), 0 where the target is ignored; scale is f32 [1]. dlogits may lie where logits do.
int row_gradients(const CrossEntropyRows& call, std::int64_t scale, std::int64_t dlogits, Stream stream);

// Both, with the gradients where the logits were. lse is written.
int row_losses_and_gradients(const CrossEntropyRows& call, std::int64_t losses, std::int64_t scale, Stream stream);

// The same for rows that one block holds: of whole 16 bytes, neither short nor very long.
bool holds_rows(const CrossEntropyRows& call);
int held_losses_and_gradients(const CrossEntropyRows& call, std::int64_t losses, std::int64_t scale, Stream stream);

// Over all rows, by their targets i32 [rows].
struct CountedRows {
  Members members;
  std::int64_t rows = 0;
  std::int32_t ignore = 0;
  std::int64_t targets = 0;
};

// loss f32 [1] = sum of losses / number of counted rows
int mean_loss(const CountedRows& call, std::int64_t losses, std::int64_t loss, Stream stream);

// scale f32 [1] = dloss / number of counted rows
int gradient_scale(const CountedRows& call, std::int64_t dloss, std::int64_t scale, Stream stream);

}  // namespace norma::cuda
