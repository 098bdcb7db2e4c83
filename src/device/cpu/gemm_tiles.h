// One product cut into tiles: blocks of rows of C, and for sums over many rows (weight gradients) also of columns,
// where the rows of C alone give few. The library has other kernels for dense operands than for parts of larger ones,
// and they round differently: the height of tiles shows in the bits and must not change, the width of parts does not.
#pragma once

#include <algorithm>
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
  void run(std::int64_t tile, const void* a, const void* b, void* c, std::byte* worker) const {
    run(tile, tile + 1, a, b, c, worker);
  }
  // Tiles [begin, end): blocks that lie side by side are one product where they are all of a wide one.
  void run(std::int64_t begin, std::int64_t end, const void* a, const void* b, void* c, std::byte* worker) const;

 private:
  // Columns are gone through in groups of a few blocks, each over all rows, so that what a thread has of neighbouring
  // tiles reads little of either operand.
  struct Place {
    std::int64_t down, across;
    std::int64_t left;  // blocks from here to the end of its group
  };
  Place place(std::int64_t tile) const;
  std::int64_t group_at(std::int64_t across) const { return std::min(group_, across_ - across / group_ * group_); }

  GemmShape shape_;
  std::int64_t element_;
  Tiling rows_;
  std::int64_t columns_;                                             // of a block
  std::int64_t across_;                                              // blocks of columns
  std::int64_t group_;                                               // of so many
  std::array<std::array<std::shared_ptr<const Gemm>, 2>, 2> gemms_;  // [last rows][last columns]
  std::array<std::array<std::shared_ptr<const Gemm>, 2>, 2> wide_;   // the same for whole groups
};

}  // namespace norma
