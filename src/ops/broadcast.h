// Index arithmetic of broadcasting, shared by elementwise ops and reductions.
#pragma once

#include <array>
#include <cstdint>

#include "norma/core/shape.h"

namespace norma {

// The shape both broadcast to; throws Error naming both when they do not fit.
Shape broadcast_shape(const Shape& a, const Shape& b);
bool broadcasts_to(const Shape& from, const Shape& to);

// How a tensor of shape `from` is walked while walking `to` in row-major order.
class BroadcastIndex {
 public:
  BroadcastIndex(const Shape& from, const Shape& to);
  // Offset in `from` of the first element of row `row` of `to` (a row: everything but the last axis).
  std::int64_t row_offset(std::int64_t row) const;
  // 1 when the last axis is walked, 0 when its single element repeats.
  std::int64_t column_stride() const { return column_stride_; }

 private:
  std::array<std::int64_t, Shape::kMaxRank> sizes_{};
  std::array<std::int64_t, Shape::kMaxRank> strides_{};
  int axes_ = 0;  // of `to` without the last
  std::int64_t column_stride_ = 0;
  bool dense_ = false;  // same shape: offset = row * width
  std::int64_t width_ = 1;
};

}  // namespace norma
