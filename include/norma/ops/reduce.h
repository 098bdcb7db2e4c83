// Sums over axes and their inverse, repetition.
#pragma once

#include "norma/graph/op.h"

namespace norma {

// Sums x down to `shape`, to which x's shape broadcasts: [rows, d] to [d], [rows, 1] or [1].
class SumTo final : public Op {
 public:
  explicit SumTo(Shape shape) : shape_(shape) {}
  std::string_view name() const override { return "sum_to"; }
  Elementary elementary() const override { return Elementary::sum; }
  std::string attributes() const override { return "shape=" + shape_.str(); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.out = {false}; }

 private:
  Shape shape_;
};

// Repeats x along the axes where it has size 1 (or none) until it has `shape`.
class BroadcastTo final : public Op {
 public:
  explicit BroadcastTo(Shape shape) : shape_(shape) {}
  std::string_view name() const override { return "broadcast_to"; }
  std::string attributes() const override { return "shape=" + shape_.str(); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;

 private:
  Shape shape_;
};

Wire sum_to(Wire x, const Shape& shape);        // x itself when nothing is to be summed
Wire broadcast_to(Wire x, const Shape& shape);  // x itself when nothing is to be repeated
Wire sum_last(Wire x);                          // over the last axis, which stays with size 1
Wire mean_last(Wire x);
Wire sum_all(Wire x);   // [1]
Wire mean_all(Wire x);  // [1]

}  // namespace norma
