// Products of many rows with a weight of 64 x 64, f32 tensors rounded to TF32: as fast as rows come and go. The library
// reaches two thirds of that, and the derivative of an activation behind a product would be a pass of its own.
#pragma once

#include <cstdint>

#include "device/cuda/products.h"
#include "norma/ops/activation.h"

namespace norma::cuda {

// Offsets of each member, in bytes.
struct ThinProduct {
  Members members = {};
  std::int64_t rows = 0;
  std::int64_t a = 0, b = 0, out = 0;  // [rows, 64], [64, 64], [rows, 64]
  std::int64_t before = kAbsent;       // [rows, 64]: what the activation is given; for relu its output
  bool transpose_b = false;            // b is stored [n, k]
};

// Whether a product is one of these: by its sizes, types and rounding, and by how its operands lie.
bool is_thin(const Product& product, const ThinProduct& thin);
// It enqueues; 0 or a cudaError_t. out = a b, or (a b) f'(before) where `before` is given.
int thin_product(const ThinProduct& product, Activation f, Stream stream);

}  // namespace norma::cuda
