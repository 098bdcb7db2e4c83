// z = a x + b y with a, b numbers [1] or vectors [channels], or absent (1): scaled residuals in one pass.
#pragma once

#include <algorithm>

#include "norma/graph/op.h"

namespace norma {

// Inputs x, y, then a when `scale_x`, then b when `scale_y`.
class ScaledAdd final : public Op {
 public:
  ScaledAdd(bool scale_x, bool scale_y) : scale_x_(scale_x), scale_y_(scale_y) {}
  bool scales_x() const { return scale_x_; }
  bool scales_y() const { return scale_y_; }

  std::string_view name() const override { return "scaled_add"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool can_overwrite(int, int in) const override { return in < 2; }
  // Terms as they come; scales are wide, and so is the sum if one term is.
  void choose(Widths& widths) const override {
    std::fill(widths.in.begin() + 2, widths.in.end(), false);
    widths.out = {widths.in[0] && widths.in[1]};
  }

 private:
  bool scale_x_, scale_y_;
};

// Either scale may be an empty wire.
Wire scaled_add(Wire x, Wire a, Wire y, Wire b = {});

}  // namespace norma
