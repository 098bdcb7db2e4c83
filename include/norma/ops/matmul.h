// Matrix products: over batches, over the rows of a tensor, and summed over rows (weight gradients).
#pragma once

#include "norma/graph/op.h"

namespace norma {

enum class Transpose { no, yes };

enum class Product {
  batched,      // a[..., m, k] b[..., k, n] -> [..., m, n]; equal leading axes
  rows,         // a[..., k] b[k, n] -> [..., n]
  reduce_rows,  // a[..., m]^T b[..., n], summed over all rows -> [m, n]
};

// c = op(a) op(b), plus a third input of c's type when `accumulate`: gradients that meet are summed inside the product.
class MatMul final : public Op {
 public:
  MatMul(Product product, Transpose a, Transpose b, bool accumulate = false)
      : product_(product), a_(a), b_(b), accumulate_(accumulate) {}

  Product product() const { return product_; }
  bool accumulates() const { return accumulate_; }
  OpPtr accumulating() const { return std::make_shared<MatMul>(product_, a_, b_, true); }

  struct Sizes {
    std::int64_t batch, m, n, k;
  };
  Sizes sizes(std::span<const Type> in) const;

  Transpose transpose_a() const { return a_; }
  Transpose transpose_b() const { return b_; }
  std::string_view name() const override { return "matmul"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int in) const override { return in < 2; }
  void choose(Widths& widths) const override;
  bool can_overwrite(int, int in) const override { return in == 2; }

 private:
  Product product_;
  Transpose a_, b_;
  bool accumulate_;
};

Wire matmul(Wire a, Wire b, Transpose transpose_a = Transpose::no, Transpose transpose_b = Transpose::no);
Wire matmul_rows(Wire x, Wire weight, Transpose transpose_weight = Transpose::no);
Wire matmul_reduce_rows(Wire a, Wire b);

}  // namespace norma
