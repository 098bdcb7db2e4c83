// The same numbers seen or ordered differently: reshape, slice, concat, permute, and conversion between dtypes.
#pragma once

#include <initializer_list>
#include <span>

#include "norma/graph/op.h"

namespace norma {

// The same memory under another shape of as many elements.
class Reshape final : public Op {
 public:
  explicit Reshape(Shape shape) : shape_(shape) {}
  std::string_view name() const override { return "reshape"; }
  std::string attributes() const override { return "shape=" + shape_.str(); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type>, std::span<const Type>) const override { return {}; }
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }
  bool views() const override { return true; }
  std::int64_t view_offset(std::span<const Type>) const override { return 0; }

 private:
  Shape shape_;
};

// `count` entries of one axis from `begin` on. A view of the same memory when that axis is the outermost one longer
// than 1, else a copy.
class Slice final : public Op {
 public:
  Slice(int axis, std::int64_t begin, std::int64_t count) : axis_(axis), begin_(begin), count_(count) {}
  int axis() const { return axis_; }
  std::int64_t begin() const { return begin_; }
  std::int64_t count() const { return count_; }
  std::string_view name() const override { return "slice"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }
  bool views() const override { return true; }
  std::int64_t view_offset(std::span<const Type> in) const override;

 private:
  int axis_;
  std::int64_t begin_, count_;
};

// x placed at `begin` of an axis that is `size` long, zeros around it: the transpose of Slice.
class Pad final : public Op {
 public:
  Pad(int axis, std::int64_t begin, std::int64_t size) : axis_(axis), begin_(begin), size_(size) {}
  int axis() const { return axis_; }
  std::int64_t begin() const { return begin_; }
  std::string_view name() const override { return "pad"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }

 private:
  int axis_;
  std::int64_t begin_, size_;
};

// Tensors one after another along one axis.
class Concat final : public Op {
 public:
  explicit Concat(int axis) : axis_(axis) {}
  int axis() const { return axis_; }
  std::string_view name() const override { return "concat"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }

 private:
  int axis_;
};

// Axis i of the result is axis order[i] of x; a copy.
class Permute final : public Op {
 public:
  explicit Permute(std::vector<int> order) : order_(std::move(order)) {}
  const std::vector<int>& order() const { return order_; }
  std::string_view name() const override { return "permute"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }

 private:
  std::vector<int> order_;
};

// The nearest numbers of another floating dtype (round to nearest, ties to even). NaN stays NaN.
class Cast final : public Op {
 public:
  explicit Cast(DType dtype) : dtype_(dtype) {}
  DType dtype() const { return dtype_; }
  std::string_view name() const override { return "cast"; }
  std::string attributes() const override { return "dtype=" + std::string(name_of(dtype_)); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;

 private:
  DType dtype_;
};

// Negative axes count from the end.
Wire reshape(Wire x, const Shape& shape);
Wire slice(Wire x, int axis, std::int64_t begin, std::int64_t count);
Wire pad(Wire x, int axis, std::int64_t begin, std::int64_t size);
Wire concat(std::span<const Wire> parts, int axis);
Wire permute(Wire x, std::span<const int> order);
Wire permute(Wire x, std::initializer_list<int> order);
Wire swap_axes(Wire x, int a, int b);
Wire cast(Wire x, DType dtype);  // x itself when it already has that dtype

inline Wire slice_rows(Wire x, std::int64_t begin, std::int64_t count) { return slice(x, 0, begin, count); }
inline Wire slice_last(Wire x, std::int64_t begin, std::int64_t count) { return slice(x, -1, begin, count); }
inline Wire concat_last(std::span<const Wire> parts) { return concat(parts, -1); }

}  // namespace norma
