// The shape of one member's tensor: contiguous, row-major, at most five dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "norma/core/dtype.h"

namespace norma {

class Shape {
 public:
  static constexpr int kMaxRank = 5;

  Shape() = default;  // rank 0: one element
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);  // throws Error on a dimension below 1 or a rank above five

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const;  // negative axes count from the end
  std::int64_t elements() const {
    std::int64_t product = 1;
    for (const std::int64_t dim : dims()) product *= dim;
    return product;
  }
  std::int64_t channels() const { return rank_ == 0 ? 1 : dims_[static_cast<std::size_t>(rank_ - 1)]; }
  std::int64_t rows() const { return elements() / channels(); }
  std::span<const std::int64_t> dims() const { return {dims_.data(), static_cast<std::size_t>(rank_)}; }
  Shape with(int axis, std::int64_t size) const;  // this shape with one dimension replaced

  std::string str() const;  // "[32, 128]"
  bool operator==(const Shape& other) const = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// What a wire carries.
struct Type {
  Shape shape;
  DType dtype = DType::f32;

  std::int64_t bytes() const { return shape.elements() * static_cast<std::int64_t>(size_of(dtype)); }
  std::string str() const;  // "f32[32, 128]"
  bool operator==(const Type& other) const = default;
};

}  // namespace norma
