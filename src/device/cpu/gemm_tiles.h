// One product cut into tiles: blocks of rows of C, and for sums over many rows (weight gradients) also of columns,
// where the rows of C alone give few. The library has other kernels for dense operands than for parts of larger ones,
// and they round differently: the height of tiles shows in the bits and must not change, the width of parts does not.
#pragma once

#include <array>
#include <memory>

#include "device/cpu/gemm.h"
#include "norma/device/cpu/kernel.h"

namespace norma {

class GemmTiles {
 public:
  struct Block {
    std::int64_t row, rows, column, columns;
  };

  enum class Cut { rows, rows_and_columns };

  // `summed`: how long the sum is that decides the height of tiles, where this product is the short rest of a longer
  // one.
  GemmTiles(const GemmShape& shape, DType dtype, Cut cut, std::int64_t summed);
  GemmTiles(const GemmShape& shape, DType dtype, Cut cut) : GemmTiles(shape, dtype, cut, shape.k) {}

  std::int64_t count() const { return rows_.tiles * across_; }
  std::int64_t worker_bytes() const;
  Block block(std::int64_t tile) const;
  // How B must lie, if the shape says that it is packed: width 0 where the library's kernels have no such layout, or
  // not all the same; such a product cannot be run.
  GemmPanels panels() const;
  // The operands of the whole product.
  void run(std::int64_t tile, const void* a, const void* b, void* c, std::byte* worker) const;

 private:
  GemmShape shape_;
  std::int64_t element_;
  Tiling rows_;
  std::int64_t columns_;                                             // of a block
  std::int64_t across_;                                              // blocks of columns
  std::array<std::array<std::shared_ptr<const Gemm>, 2>, 2> gemms_;  // [last rows][last columns]
};

}  // namespace norma
