// Matrix products of bf16 by kernels of our own, where the library has no good answer: see hopper_product.cuh.
#pragma once

#include <cstdint>
#include <span>

#include "norma/device/cuda/kernel.h"
#include "norma/ops/activation.h"
#include "norma/ops/matmul.h"

namespace norma::cuda {

// Whether the device that is current has them.
bool has_hopper_products();

// Offsets of each member, in bytes; all tensors are bf16 unless told otherwise and row-major.
struct FusedProduct {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a = kAbsent, b = kAbsent;  // [m, k]; [k, n] for activated_product, [n, k] for sloped_product
  std::int64_t bias = kAbsent;            // [n]
  std::int64_t before = kAbsent;          // [m, n]: what the activation is given
  std::int64_t out = kAbsent;             // [m, n]
  std::int64_t lines = kAbsent;           // f32, for sloped_product: of each kRowsOfSlopeLine rows of `out` the sum [n]
};
// Whether sizes and offsets suit the two below.
bool fits(const FusedProduct& product);
// They enqueue; 0 or a cudaError_t. out = f(a b + bias), and what f is given where it is wanted.
int activated_product(const FusedProduct& product, Activation f, const Members& members, Stream stream);
// out = a b + bias, or a b^T + bias
int plain_product(const FusedProduct& product, Transpose of_b, const Members& members, Stream stream);
// Whether that suits and is faster than the library's: shallow products of many tiles.
bool plain_product_pays(const FusedProduct& product, const Members& members);
// out = (a b^T) f'(before), and its sums over rows where they are wanted; for relu `before` is its output
int sloped_product(const FusedProduct& product, Activation f, const Members& members, Stream stream);

// y = f(x weight + bias) and dz = (dy gradient_weight^T) f'(x weight + bias), of the same sizes.
struct ProductPair {
  std::int64_t m = 0, n = 0, made_k = 0, gradient_k = 0;
  std::int64_t x = kAbsent, weight = kAbsent;            // [m, made_k], [made_k, n]
  std::int64_t bias = kAbsent;                           // [n]
  std::int64_t dy = kAbsent, gradient_weight = kAbsent;  // [m, gradient_k], [n, gradient_k]
  std::int64_t y = kAbsent, dz = kAbsent;                // [m, n]
};
bool fits(const ProductPair& pair);
int made_and_sloped(const ProductPair& pair, Activation f, const Members& members, Stream stream);

// a^T b and the sums of b, both over rows, in f32.
struct WeightProduct {
  std::int64_t rows = 0, m = 0, n = 0;
  std::int64_t a = kAbsent, b = kAbsent, out = kAbsent;  // [rows, m], [rows, n], [m, n]
  std::int64_t sums = kAbsent;                           // [n]
};
bool fits(const WeightProduct& product);
int weight_products(std::span<const WeightProduct> products, const Members& members, Stream stream);

}  // namespace norma::cuda
