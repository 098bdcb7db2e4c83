// Sums over the neighbours of each node of an undirected graph: y[i] = sum of x[j] over the edges (i, j).
#pragma once

#include "norma/graph/op.h"

namespace norma {

// x[nodes, ...], edges i32[2, count]: pairs of a node and a neighbour, sorted by the node, every edge in both
// directions. So it is its own transpose. A neighbour that does not exist makes NaN.
class NeighbourSum final : public Op {
 public:
  std::string_view name() const override { return "neighbour_sum"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }
};

Wire neighbour_sum(Wire x, Wire edges);

}  // namespace norma
