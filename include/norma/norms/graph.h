// Norms over the nodes of a graph, x[nodes, ..., channels]: GraphNorm, PairNorm and MeanNorm. Their statistics are over
// all rows, or over the rows of each segment where ids say which segment a row is of (ops/segments.h).
#pragma once

#include "norma/norms/row.h"

namespace norma {

struct NodeSegments {
  Wire ids = {};  // i32[rows], sorted; empty: all rows are of one graph
  std::int64_t count = 1;
};

// in: x, eps [1] unless it is the mean; alpha, gain and bias [channels] of GraphNorm; ids i32[rows] where there are any
class NodeNorm final : public Op {
 public:
  enum class Kind { graph, pair, mean };
  NodeNorm(Kind kind, std::int64_t segments) : kind_(kind), segments_(segments) {}
  Kind kind() const { return kind_; }

  std::string_view name() const override;
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;

 private:
  std::size_t count() const;  // of inputs, without ids

  Kind kind_;
  std::int64_t segments_;  // 0: there are none
};

// z = x - alpha mean, y = gain z / sqrt(mean(z^2) + eps) + bias, channel by channel
Wire graph_norm(Wire x, Wire alpha, Wire gain, Wire bias, Scalar eps = 1e-5, const NodeSegments& segments = {});
// z = x - mean, y = z / sqrt(mean over nodes of |z|^2 + eps)
Wire pair_norm(Wire x, Scalar eps = 1e-6, const NodeSegments& segments = {});
// y = x - mean
Wire mean_norm(Wire x, const NodeSegments& segments = {});

}  // namespace norma
