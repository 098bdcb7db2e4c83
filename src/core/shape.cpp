#include "norma/core/shape.h"

#include <limits>

#include "norma/core/error.h"

namespace norma {
namespace {

std::string join(std::span<const std::int64_t> dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > kMaxRank)
    fail("shape {} has {} dimensions; at most {} are supported", join(dims), dims.size(), kMaxRank);
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 1) fail("shape {}: every dimension must be at least 1", join(dims));
    // 2^46 elements (over 280 TB in f32) keeps every byte count far inside 64 bits.
    if (elements > (std::int64_t{1} << 46) / dim) fail("shape {} has too many elements", join(dims));
    elements *= dim;
    dims_[static_cast<std::size_t>(rank_++)] = dim;
  }
}

std::int64_t Shape::operator[](int axis) const {
  const int index = axis < 0 ? rank_ + axis : axis;
  NORMA_ASSERT(index >= 0 && index < rank_);
  return dims_[static_cast<std::size_t>(index)];
}

Shape Shape::with(int axis, std::int64_t size) const {
  const int index = axis < 0 ? rank_ + axis : axis;
  NORMA_ASSERT(index >= 0 && index < rank_);
  std::array<std::int64_t, kMaxRank> changed = dims_;
  changed[static_cast<std::size_t>(index)] = size;
  return Shape(std::span(changed.data(), static_cast<std::size_t>(rank_)));
}

std::string Shape::str() const { return join(dims()); }

std::string Type::str() const { return std::string(name_of(dtype)) + shape.str(); }

}  // namespace norma
