// y = x, and no gradient: what a scheme may read but not push back through.
#pragma once

#include "norma/graph/op.h"

namespace norma {

class StopGradient final : public Op {
 public:
  std::string_view name() const override { return "stop_gradient"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {in[0]}; }
  Wires vjp(const VjpContext& context) const override { return Wires(context.in.size()); }
  Cost cost(std::span<const Type>, std::span<const Type>) const override { return {}; }
  bool views() const override { return true; }
  std::int64_t view_offset(std::span<const Type>) const override { return 0; }
};

Wire stop_gradient(Wire x);

}  // namespace norma
