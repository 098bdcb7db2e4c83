// A layer's activation made again for its backward pass, together with the gradient through it: y = f(x W + b) and
// dz = (dy V) f'(x W + b), which share what f is given. One op where a device holds that in registers.
#pragma once

#include "norma/ops/activation.h"
#include "norma/ops/matmul.h"

namespace norma {

// in: dy [.., k], V [k, n] or, transposed, [n, k], x [.., m], W [m, n] and, when `bias`, b [n]; out: dz and y [.., n]
class LinearSlope final : public Op {
 public:
  LinearSlope(bool bias, Activation activation, Transpose gradient_weight)
      : bias_(bias), activation_(activation), gradient_weight_(gradient_weight) {}

  bool has_bias() const { return bias_; }
  Activation activation() const { return activation_; }
  Transpose gradient_weight() const { return gradient_weight_; }

  std::string_view name() const override { return "linear_slope"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.all(true); }

 private:
  bool bias_;
  Activation activation_;
  Transpose gradient_weight_;
};

// dz and y; `bias` may be empty.
Wires linear_slope(Wire dy, Wire gradient_weight, Wire x, Wire weight, Wire bias, Activation activation,
                   Transpose transpose_gradient_weight);

}  // namespace norma
