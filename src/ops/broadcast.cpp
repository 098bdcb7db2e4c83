#include "ops/broadcast.h"

#include <algorithm>

#include "norma/core/error.h"

namespace norma {
namespace {

std::int64_t dim_from_end(const Shape& shape, int axis) { return axis < shape.rank() ? shape[-1 - axis] : 1; }

}  // namespace

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const std::int64_t size = dim_from_end(from, axis);
    if (size != 1 && size != dim_from_end(to, axis)) return false;
  }
  return true;
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t x = dim_from_end(a, axis), y = dim_from_end(b, axis);
    if (x != y && x != 1 && y != 1) fail("shapes {} and {} do not broadcast: {} meets {}", a.str(), b.str(), x, y);
    dims[static_cast<std::size_t>(rank - 1 - axis)] = std::max(x, y);
  }
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
}

BroadcastIndex::BroadcastIndex(const Shape& from, const Shape& to) : dense_(from == to), width_(to.channels()) {
  NORMA_ASSERT(broadcasts_to(from, to));
  axes_ = std::max(0, to.rank() - 1);
  column_stride_ = dim_from_end(from, 0) == 1 && to.channels() != 1 ? 0 : 1;
  std::int64_t stride = dim_from_end(from, 0);
  for (int axis = 1; axis < to.rank(); ++axis) {
    const auto slot = static_cast<std::size_t>(axes_ - axis);
    const std::int64_t size = dim_from_end(from, axis);
    sizes_[slot] = dim_from_end(to, axis);
    strides_[slot] = size == 1 ? 0 : stride;
    stride *= size;
  }
}

std::int64_t BroadcastIndex::row_offset(std::int64_t row) const {
  if (dense_) return row * width_;
  std::int64_t offset = 0;
  for (int axis = axes_ - 1; axis >= 0; --axis) {
    const auto slot = static_cast<std::size_t>(axis);
    offset += row % sizes_[slot] * strides_[slot];
    row /= sizes_[slot];
  }
  return offset;
}

}  // namespace norma
