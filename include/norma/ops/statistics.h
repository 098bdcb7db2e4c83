// What a probe reads off a wire in one pass.
#pragma once

#include "norma/graph/op.h"

namespace norma {

struct Statistics {
  enum Index { mean, rms, max_abs, non_finite, size };
};

// x -> [4]: mean, root mean square, largest magnitude, number of elements that are not finite. No gradient. Where there
// are non-finite elements the first three are not finite either: a probe never hides them.
class StatisticsOp final : public Op {
 public:
  std::string_view name() const override { return "statistics"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  CpuKernel cpu(std::span<const Type> in, std::span<const Type> out) const override;
};

Wire statistics(Wire x);

}  // namespace norma
