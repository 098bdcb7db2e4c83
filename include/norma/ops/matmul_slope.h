// The gradient through an activation whose own gradient is a product: dz = (dy W) f'(z). One op where a device applies
// the derivative on the product's way out.
#pragma once

#include "norma/ops/activation.h"
#include "norma/ops/matmul.h"

namespace norma {

// in: dy [.., k], W [k, n] or, transposed, [n, k], and z [.., n] (for relu: its output); out: dz [.., n]
// With `lines`, also [lines, n]: sums of dz over rows in any division, zero where there are fewer. The gradient by a
// bias is then no pass over dz; whoever adds up more at the same time adds up the lines (the rewrite slope_lines).
class MatMulSlope final : public Op {
 public:
  MatMulSlope(Activation activation, Transpose weight, std::int64_t lines = 0)
      : activation_(activation), weight_(weight), lines_(lines) {}

  Activation activation() const { return activation_; }
  std::int64_t lines() const { return lines_; }
  MatMul product() const { return {Product::rows, Transpose::no, weight_}; }
  std::string_view name() const override { return "matmul_slope"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override;

 private:
  Activation activation_;
  Transpose weight_;
  std::int64_t lines_;
};

// Rows that a kernel has a line for.
constexpr std::int64_t kRowsOfSlopeLine = 64;

Wire matmul_slope(Wire dy, Wire weight, Wire z, Activation activation, Transpose transpose_weight);

}  // namespace norma
