// y = x (1 + scale) + shift, with a scale and a shift of every channel for each sample: how a condition enters a
// network (FiLM, Perez et al. 2018, arXiv 1709.07871; adaLN, Peebles, Xie 2023, arXiv 2212.09748).
#pragma once

#include "norma/graph/op.h"

namespace norma {

// in: x [batch, .., d], scale and shift [batch, d] or [batch, 1, .., d]; out: y as x
class Modulate final : public Op {
 public:
  std::string_view name() const override { return "modulate"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }
  bool can_overwrite(int, int in) const override { return in == 0; }
};

// in: x, scale, dy; out: dx = dy (1 + scale), dscale = sum over a sample of dy x, dshift = sum of dy, as scale
class ModulateBackward final : public Op {
 public:
  std::string_view name() const override { return "modulate_backward"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }
};

Wire modulate(Wire x, Wire scale, Wire shift);

}  // namespace norma
