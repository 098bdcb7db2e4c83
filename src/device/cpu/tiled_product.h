// C = op(A) op(B) (+ bias) (+ C), cut into tiles for threads to share: blocks of rows, and of columns as well where the
// rows alone give too few. Tiles follow from the shape alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/cpu/gemm.h"

namespace norma {

class TiledProduct {
 public:
  TiledProduct(const GemmShape& shape, DType dtype);

  std::int64_t tiles() const { return rows_.count() * columns_.count(); }
  std::int64_t worker_bytes() const;  // private scratch of each thread

  // What a tile computes of C. Neighbouring tiles share their rows.
  struct Block {
    std::int64_t row, rows, column, columns;
  };
  Block block(std::int64_t tile) const;

  void run(std::int64_t tile, const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* c,
           std::byte* worker) const;

 private:
  // An axis in pieces of one size; the last may be shorter.
  struct Cut {
    std::int64_t total = 0, size = 1;

    std::int64_t count() const { return (total + size - 1) / size; }
    std::int64_t at(std::int64_t index) const { return index * size; }
    std::int64_t length(std::int64_t index) const { return std::min(size, total - at(index)); }
    bool last(std::int64_t index) const { return index + 1 == count(); }
  };

  GemmShape shape_;
  std::int64_t element_;
  Cut rows_, columns_;
  std::shared_ptr<const Gemm> gemms_[2][2];  // [last block of rows or another][of columns]
};

}  // namespace norma
