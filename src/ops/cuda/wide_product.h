// Products of a wide factor whose rows begin anywhere (their length is no multiple of 16 bytes), such as the features
// of a graph's nodes, with 64 columns, f32 tensors rounded to TF32, for many members. The library reads such rows at
// half the speed of memory.
#pragma once

#include <cstdint>

#include "device/cuda/products.h"

namespace norma::cuda {

// Offsets of each member, in bytes. out = a b, or a^T b where `turned`.
struct WideProduct {
  Members members = {};
  std::int64_t rows = 0, wide = 0;     // of a
  std::int64_t a = 0, b = 0, out = 0;  // [rows, wide], [wide or rows, 64], [rows or wide, 64]
  bool turned = false;
};

// Whether a product is one of these: by its sizes, types and rounding, and by how many there are.
bool is_wide(const Product& product, const WideProduct& wide);
// It enqueues; 0 or a cudaError_t.
int wide_product(const WideProduct& product, Stream stream);

}  // namespace norma::cuda
