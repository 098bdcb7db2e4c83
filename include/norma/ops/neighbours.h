// What the neighbours of each node of an undirected graph come to: sums, scaled sums and largest numbers.
#pragma once

#include "norma/graph/op.h"

namespace norma {

// y[i] = sum of x[j] over the edges (i, j).
// x[nodes, ...], edges i32[2, count]: pairs of a node and a neighbour, sorted by the node and then by the neighbour,
// every edge in both directions. So it is its own transpose. Pairs whose node is `nodes` stand at the end and are none:
// room for edges that are not there this time. A neighbour that does not exist makes NaN.
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

// y[i] = left[i] * sum of right[j] x[j]: means (left = 1 / degrees) and D^-1/2 A D^-1/2 (both its roots).
// in: x, edges, then left[nodes] and right[nodes], each where it is there
class NeighbourScaled final : public Op {
 public:
  NeighbourScaled(bool left, bool right) : left_(left), right_(right) {}
  int left() const { return left_ ? 2 : -1; }  // which input
  int right() const { return right_ ? (left_ ? 3 : 2) : -1; }

  std::string_view name() const override { return "neighbour_scaled"; }
  std::string attributes() const override { return left_ && right_ ? "both" : left_ ? "left" : "right"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int in) const override { return in == 0; }
  void choose(Widths& widths) const override {
    const bool x = widths.in[0];
    widths.all(false);
    widths.in[0] = widths.out[0] = x;
  }

 private:
  bool left_, right_;
};

// y[i] = the largest x[j], channel by channel, and which j that was, i32 of y's shape: of equal ones the first. A node
// without neighbours has 0, and the number behind the last node. NaN is larger than any number.
class NeighbourMax final : public Op {
 public:
  std::string_view name() const override { return "neighbour_max"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;  // with all pairs of nodes: small graphs
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }
  bool optional_output(int out) const override { return out == 1; }
};

// Rows by number, channel by channel: gathered (y[i, c] = x[picks[i, c], c]) or added up, the transpose. The number
// behind the last row picks nothing.
// in: x[rows, channels] or dy of the picks' shape, picks i32[.., channels]; out: of the picks' shape, or [rows,
// channels]
class PickedRows final : public Op {
 public:
  enum class Way { gather, scatter };
  PickedRows(Way way, std::int64_t rows) : way_(way), rows_(rows) {}
  Way way() const { return way_; }
  std::int64_t rows() const { return rows_; }

  std::string_view name() const override { return way_ == Way::gather ? "gather_picked" : "scatter_picked"; }
  std::string attributes() const override { return "rows=" + std::to_string(rows_); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }

 private:
  Way way_;
  std::int64_t rows_;
};

// left and right may be empty.
Wire neighbour_sum(Wire x, Wire edges, Wire left = {}, Wire right = {});
Wire neighbour_max(Wire x, Wire edges);

}  // namespace norma
