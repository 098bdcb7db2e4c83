// Optimisers: all parameters in one op, each in one pass over it; parameters and moments are updated in place.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "norma/graph/op.h"

namespace norma {

// With g the gradient times its scale, plus l2 p:
//   adam     m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2  (Kingma & Ba 2015; Loshchilov & Hutter
//   2019)
//            step = lr m / correction1 / (sqrt(v / correction2) + eps)
//   radam    the same times `rectify`, or lr m / correction1 while rectify is 0 (Liu et al. 2020)
//   sgd      m <- beta1 m + g,  step = lr m
//   adagrad  v <- v + g^2,  step = lr g / (sqrt(v) + eps)  (Duchi et al. 2011)
// and then p <- p - shrink p - step. Decoupled weight decay is `shrink`, decay through the gradient is `l2`.
enum class OptimiserKind { adam, radam, sgd, adagrad };

std::string_view name_of(OptimiserKind kind);

// What an optimiser reads each step, per member: the layout of its `control` input.
struct OptimiserControl {
  enum Index { lr, shrink, l2, beta1, beta2, eps, correction1, correction2, rectify, active, size };
};

// Vectors that have unit length from the start and after every step (nGPT): none, or the rows or columns of a matrix.
enum class UnitVectors { none, rows, columns };

// What distinguishes one parameter from the others.
struct OptimiserGroup {
  double lr = 1, eps = 1, shrink = 1, l2 = 1;  // multiply those of the control block
  UnitVectors unit = UnitVectors::none;
};

// All parameters in one op. Inputs: n parameters, their n gradients, their n first states, n second states where the
// kind has two, control and a scale [1] on the gradients. Nothing changes while control.active is 0 or the scale is not
// finite. Outputs: the updated parameters and states in the same order, and the sum of squares of the change of each
// parameter, f64[n] (optional).
class Optimiser final : public Op {
 public:
  // One group per parameter.
  Optimiser(OptimiserKind kind, std::vector<OptimiserGroup> groups) : kind_(kind), groups_(std::move(groups)) {}

  OptimiserKind kind() const { return kind_; }
  const std::vector<OptimiserGroup>& groups() const { return groups_; }
  int parameters() const { return static_cast<int>(groups_.size()); }
  int states() const;
  // Where inputs and outputs are.
  int gradient(int parameter) const { return parameters() + parameter; }
  int state_in(int state, int parameter) const { return (2 + state) * parameters() + parameter; }
  int state_out(int state, int parameter) const { return (1 + state) * parameters() + parameter; }
  int control() const { return (2 + states()) * parameters(); }
  int scale() const { return control() + 1; }
  int squares() const { return (1 + states()) * parameters(); }

  std::string_view name() const override { return name_of(kind_); }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  std::vector<Update> updates() const override;
  bool optional_output(int out) const override { return out == squares(); }

 private:
  OptimiserKind kind_;
  std::vector<OptimiserGroup> groups_;
};

// Adds the update of all parameters, making their states "<name>/m" and "<name>/v" as the kind needs them. Returns the
// squared changes, f64[parameters].
Wire optimise(OptimiserKind kind, std::span<const Wire> parameters, std::span<const Wire> gradients, Wire control,
              Wire scale, std::vector<OptimiserGroup> groups);

}  // namespace norma
