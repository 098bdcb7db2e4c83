// The gradient through an activation whose own gradient is a product: dz = (dy W) f'(z). One op where a device applies
// the derivative on the product's way out.
#pragma once

#include "norma/ops/activation.h"
#include "norma/ops/matmul.h"

namespace norma {

// in: dy [.., k], W [k, n] or, transposed, [n, k], and z [.., n] (for relu: its output); out: dz [.., n]
class MatMulSlope final : public Op {
 public:
  MatMulSlope(Activation activation, Transpose weight) : activation_(activation), weight_(weight) {}

  Activation activation() const { return activation_; }
  MatMul product() const { return {Product::rows, Transpose::no, weight_}; }
  std::string_view name() const override { return "matmul_slope"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.all(true); }

 private:
  Activation activation_;
  Transpose weight_;
};

Wire matmul_slope(Wire dy, Wire weight, Wire z, Activation activation, Transpose transpose_weight);

}  // namespace norma
