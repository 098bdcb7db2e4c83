// DyT, dynamic tanh: y = gain tanh(alpha x) + bias. No statistics. Zhu, Chen, He, LeCun, Liu 2025.
#pragma once

#include "norma/norms/row.h"

namespace norma {

// in: x [.., d], alpha [1], gain [d] if any, bias [d] if any; out: y [.., d]
class DyT final : public Op {
 public:
  explicit DyT(Affine affine) : affine_(affine) {}
  Affine affine() const { return affine_; }
  std::string_view name() const override { return "dyt"; }
  std::string attributes() const override { return "affine=" + std::string(name_of(affine_)); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool can_overwrite(int, int in) const override { return in == 0; }

 private:
  Affine affine_;
};

// in: x, dy [.., d], alpha [1], gain [d] if any; out: dx [.., d], dalpha [1], dgain [d] if any, dbias [d] if any
class DyTBackward final : public Op {
 public:
  explicit DyTBackward(Affine affine) : affine_(affine) {}
  Affine affine() const { return affine_; }
  std::string_view name() const override { return "dyt_backward"; }
  std::string attributes() const override { return "affine=" + std::string(name_of(affine_)); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool optional_output(int) const override { return true; }
  bool can_overwrite(int out, int in) const override { return out == 0 && in < 2; }

 private:
  Affine affine_;
};

Wire dyt(Wire x, Wire alpha, Wire gain, Wire bias);

}  // namespace norma
