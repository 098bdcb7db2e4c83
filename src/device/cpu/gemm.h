// C = op(A) op(B) (+ bias) (+ C): oneDNN's matmul for f32, a plain loop for f64 (gradient checks only). Always on the
// calling thread: the tiles of a kernel are the parallelism.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "norma/core/dtype.h"

namespace norma {

struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  // Strides in elements: A is [m, k], B is [k, n] as seen by the product, C is [m, n] with unit column stride.
  std::int64_t a_row = 0, a_column = 0;
  std::int64_t b_row = 0, b_column = 0;
  std::int64_t c_row = 0;
  bool bias = false;        // adds a row vector [n]
  bool accumulate = false;  // adds the old C
  bool packed = false;      // B lies as Gemm::panels() says; its strides are those that it was packed from

  auto operator<=>(const GemmShape&) const = default;
};

// Row-major operands; `transposed` means that memory holds the transpose of what the product sees.
GemmShape row_major_gemm(std::int64_t m, std::int64_t n, std::int64_t k, bool a_transposed, bool b_transposed);

// B [k, n] as a library reads it fastest: panels of `width` columns one after another, each dense [depth, width], zeros
// where B has nothing. Whoever runs many products with one B packs it once, and they need not.
struct GemmPanels {
  std::int64_t width = 0;  // 0: the library takes B as it is
  std::int64_t depth = 0;  // k, rounded up
  std::int64_t count = 0;

  std::int64_t elements() const { return count * depth * width; }
  bool operator==(const GemmPanels&) const = default;
};

class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual GemmPanels panels() const { return {}; }
  virtual std::int64_t worker_bytes() const = 0;  // private scratch that run() needs
  virtual void run(const void* a, const void* b, const void* bias, void* c, std::byte* worker) const = 0;
};

// Compiled products are kept for the life of the process and shared: equal shapes compile once.
std::shared_ptr<const Gemm> make_gemm(const GemmShape& shape, DType dtype);

// How many rows of C one tile takes at least: enough work to outweigh the call, but no fewer than `least`. Short blocks
// pack B too often when B is a weight; sums over rows (weight gradients) have few rows of C and bear shorter ones.
std::int64_t gemm_tile_grain(std::int64_t n, std::int64_t k, std::int64_t least = 64);

}  // namespace norma
