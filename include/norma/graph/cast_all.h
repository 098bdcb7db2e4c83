// Tensors, each in another floating dtype: what mixed precision puts between ops that differ in width.
#pragma once

#include "norma/graph/op.h"

namespace norma {

// Output i is input i, rounded to nearest, ties to even. One op for all weights of a model: they are many, and small.
class CastAll final : public Op {
 public:
  explicit CastAll(DType dtype) : dtype_(dtype) {}
  DType dtype() const { return dtype_; }
  std::string_view name() const override { return "cast_all"; }
  std::string attributes() const override { return "dtype=" + std::string(name_of(dtype_)); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;

 private:
  DType dtype_;
};

}  // namespace norma
