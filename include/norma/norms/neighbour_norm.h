// A sum over neighbours, the stream it is added to, and the norm of that: a row's neighbours are added up by those who
// have the row, so that nothing lies between.
#pragma once

#include "norma/graph/rewrite.h"
#include "norma/norms/row.h"
#include "norma/ops/neighbour_affine.h"

namespace norma {

// in:  those of the sum, then those of the norm of two terms without its second: the stream, eps [1], gain and bias
// out: those of the norm (y, rstd, mean if any, the terms' sum), and what is added to the stream
// Fusions make it of a graph that is differentiated already.
class NeighbourNorm final : public Op {
 public:
  // A sum without an activation, a norm of two terms without scales.
  NeighbourNorm(std::shared_ptr<const NeighbourAffine> sum, std::shared_ptr<const RowNorm> norm)
      : sum_(std::move(sum)), norm_(std::move(norm)) {}

  const NeighbourAffine& sum() const { return *sum_; }
  const RowNorm& norm() const { return *norm_; }
  int stream() const { return sum_->bias() + 1; }  // which input
  int added() const;                               // which output: what is added to the stream

  std::string_view name() const override { return "neighbour_norm"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool optional_output(int out) const override { return out > 0; }
  bool spared_output(int out) const override { return out == added(); }
  bool wants_narrow(int in) const override { return in == 0; }
  void choose(Widths& widths) const override;

 private:
  std::shared_ptr<const NeighbourAffine> sum_;
  std::shared_ptr<const RowNorm> norm_;
};

// For devices that have it, after the fusions of norms and of sums over neighbours:
//   neighbour_norm  a norm along the row of a stream and a sum over neighbours with its bias, known where the latter is
std::vector<Rewrite> neighbour_norm_fusions();

}  // namespace norma
