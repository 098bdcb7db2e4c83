// Indices as rows of zeros with a one, for references that pick by index.
#pragma once

#include <cstdint>

#include "norma/graph/op.h"

namespace norma {

// targets i32[...] -> [..., classes]: 1 at the target. A target that is `ignore` gives zeros, one outside the classes
// NaN. No gradient.
class OneHot final : public Op {
 public:
  OneHot(std::int64_t classes, std::int32_t ignore, DType dtype) : classes_(classes), ignore_(ignore), dtype_(dtype) {}
  std::int64_t classes() const { return classes_; }
  std::int32_t ignore() const { return ignore_; }
  DType dtype() const { return dtype_; }
  std::string_view name() const override { return "one_hot"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;

 private:
  std::int64_t classes_;
  std::int32_t ignore_;
  DType dtype_;
};

Wire one_hot(Wire targets, std::int64_t classes, std::int32_t ignore, DType dtype);

}  // namespace norma
