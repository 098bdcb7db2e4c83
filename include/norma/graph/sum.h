// y = x1 + x2 + ... for wires of one type: residual adds, and gradients that meet. The one op the graph itself needs.
#pragma once

#include <span>

#include "norma/graph/op.h"

namespace norma {

class Sum final : public Op {
 public:
  std::string_view name() const override { return "sum"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool can_overwrite(int, int) const override { return true; }
  void choose(Widths& widths) const override;  // terms as they come; the sum is wide if one of them is
};

Wire sum(std::span<const Wire> terms);

}  // namespace norma
