// Gradients by the weights of several products at once, and by their biases. Each is small beside a device that runs
// many such products side by side: one launch for all of them where it pays for launches.
#pragma once

#include <vector>

#include "norma/graph/op.h"

namespace norma {

constexpr int kMostWeightGradients = 8;  // products of one op

// in: x_0 [.., m_0], dy_0 [.., n_0], x_1, dy_1, ..; out: for each pair x^T dy [m, n], summed over all rows, then for
// those that have a bias the sum [n] of dy over all rows
class WeightGradients final : public Op {
 public:
  explicit WeightGradients(std::vector<bool> has_bias) : has_bias_(std::move(has_bias)) {}

  const std::vector<bool>& has_bias() const { return has_bias_; }
  std::string_view name() const override { return "weight_gradients"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override;  // factors narrow, gradients wide

 private:
  std::vector<bool> has_bias_;  // by pair
};

Wires weight_gradients(std::span<const Wire> pairs, std::vector<bool> has_bias);

}  // namespace norma
