// Products of rows that are mostly zeros, such as the words of a document: what is zero is skipped. The same numbers as
// a product, in another order.
#pragma once

#include "norma/graph/op.h"

namespace norma {

// x[rows, in], weight[in, out] -> x weight[rows, out], and what was found in the rows, for the gradient by the weight:
// i32[rows, ...], how many numbers (-1: too many to be listed, or nobody looked), their places, their bits.
class SparseProduct final : public Op {
 public:
  std::string_view name() const override { return "sparse_product"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool optional_output(int out) const override { return out == 1; }
};

// x[rows, in], what a product has found in it, dy[rows, out] -> x^T dy[in, out]
class SparseGradient final : public Op {
 public:
  std::string_view name() const override { return "sparse_gradient"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
};

Wire sparse_product(Wire x, Wire weight);

}  // namespace norma
