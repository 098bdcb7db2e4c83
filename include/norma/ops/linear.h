// y = act(x W + b): one product with its bias and activation applied while each tile is still in cache.
#pragma once

#include "norma/graph/op.h"
#include "norma/ops/activation.h"

namespace norma {

// Inputs x[..., in], W[in, out] and, when `bias`, b[out]. Outputs y[..., out] and, with an activation, the value before
// it (z), which takes memory only when the backward pass reads it.
class Linear final : public Op {
 public:
  Linear(bool bias, Activation activation) : bias_(bias), activation_(activation) {}
  bool has_bias() const { return bias_; }
  Activation activation() const { return activation_; }

  std::string_view name() const override { return "linear"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.all(true); }
  bool optional_output(int out) const override { return out == 1; }

 private:
  bool bias_;
  Activation activation_;
};

Wire linear(Wire x, Wire weight, Wire bias = {}, Activation activation = Activation::none);

}  // namespace norma
