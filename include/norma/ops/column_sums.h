// Sums over the rows of several tensors at once. A layer's biases each have such a gradient: one launch for all of them
// where a device pays for launches.
#pragma once

#include "norma/graph/op.h"

namespace norma {

constexpr int kMostColumnSums = 24;  // tensors of one op

// in: x_k [.., d_k], out: for each the sum [d_k] over all of its rows
class ColumnSums final : public Op {
 public:
  std::string_view name() const override { return "column_sums"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override;  // tensors as they come, sums wide
};

Wires column_sums(std::span<const Wire> x);

}  // namespace norma
