// y = act(A x + b), A the neighbours of each node scaled: a sum with its bias and activation while the rows are in
// cache.
#pragma once

#include "norma/graph/op.h"
#include "norma/ops/activation.h"

namespace norma {

// in: those of NeighbourScaled (x[nodes, ..., channels], edges, left[nodes] and right[nodes], each where it is there),
// then b[channels]. Outputs y and, with an activation, the value before it, which takes memory only when it is read.
// Fusions make it of a graph that is differentiated already.
class NeighbourAffine final : public Op {
 public:
  NeighbourAffine(bool left, bool right, Activation activation) : left_(left), right_(right), activation_(activation) {}
  bool has_left() const { return left_; }
  bool has_right() const { return right_; }
  int left() const { return left_ ? 2 : -1; }  // which input
  int right() const { return right_ ? (left_ ? 3 : 2) : -1; }
  int bias() const { return 2 + (left_ ? 1 : 0) + (right_ ? 1 : 0); }
  Activation activation() const { return activation_; }

  std::string_view name() const override { return "neighbour_affine"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool optional_output(int out) const override { return out == 1; }
  bool wants_narrow(int in) const override { return in == 0; }
  void choose(Widths& widths) const override;

 private:
  bool left_, right_;
  Activation activation_;
};

}  // namespace norma
