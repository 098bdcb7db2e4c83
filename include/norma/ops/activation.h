// Activations: relu, gelu (exact, by erf), gelu_tanh, silu; and swiglu, which gates one half of its input by the other.
#pragma once

#include <string_view>

#include "norma/graph/op.h"

namespace norma {

enum class Activation { none, relu, gelu, gelu_tanh, silu };

std::string_view name_of(Activation activation);
Activation parse_activation(std::string_view name);  // throws Error naming the nearest

class ActivationOp final : public Op {
 public:
  explicit ActivationOp(Activation activation) : activation_(activation) {}
  Activation activation() const { return activation_; }
  std::string_view name() const override { return name_of(activation_); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }
  bool can_overwrite(int, int) const override { return true; }

 private:
  Activation activation_;
};

// dx = dy * f'(x). relu takes its output instead of its input, so that nothing else needs to be kept.
class ActivationBackward final : public Op {
 public:
  explicit ActivationBackward(Activation activation) : activation_(activation) {}
  Activation activation() const { return activation_; }
  std::string_view name() const override { return "activation_backward"; }
  std::string attributes() const override { return std::string(name_of(activation_)); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }
  bool can_overwrite(int, int) const override { return true; }

 private:
  Activation activation_;
};

// y = silu(g) * u for x = [g, u] packed along the last axis.
class SwiGlu final : public Op {
 public:
  std::string_view name() const override { return "swiglu"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }
};

class SwiGluBackward final : public Op {
 public:
  std::string_view name() const override { return "swiglu_backward"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }
};

Wire activate(Wire x, Activation activation);  // x itself for none
// The gradient by x, given x and y = f(x); which of the two is read depends on the activation.
Wire activate_backward(Wire x, Wire y, Wire dy, Activation activation);
Wire swiglu(Wire x);

// The same functions on plain memory, for kernels that fuse them: y = f(x), chosen for this machine.
using ActivationLoop32 = void (*)(Activation, const float* x, float* y, std::int64_t n);
using ActivationLoop64 = void (*)(Activation, const double* x, double* y, std::int64_t n);
ActivationLoop32 activation_loop_f32();
ActivationLoop64 activation_loop_f64();

}  // namespace norma
