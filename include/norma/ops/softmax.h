// y = exp(x - max x) / sum exp(x - max x) over the last axis, with an optional mask.
#pragma once

#include "norma/graph/op.h"

namespace norma {

// Which keys a query sees: all of them, or those up to its own position.
enum class Mask { full, causal };

std::string_view name_of(Mask mask);

// Inputs: x[..., queries, keys], and optionally lengths i32[x.shape[0]]: keys of sample b from lengths[b] on are hidden
// (lengths outside 0..keys count as the nearest of the two). Hidden entries are 0, whatever x holds there; a row in
// which everything is hidden is 0 throughout.
class Softmax final : public Op {
 public:
  explicit Softmax(Mask mask) : mask_(mask) {}
  Mask mask() const { return mask_; }
  std::string_view name() const override { return "softmax"; }
  std::string attributes() const override { return "mask=" + std::string(name_of(mask_)); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool can_overwrite(int, int in) const override { return in == 0; }

 private:
  Mask mask_;
};

// dx = y (dy - sum of y dy) from the softmax y and the gradient by it; masks need no care, since y is 0 there.
class SoftmaxBackward final : public Op {
 public:
  std::string_view name() const override { return "softmax_backward"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool can_overwrite(int, int) const override { return true; }
};

Wire softmax(Wire x, Mask mask = Mask::full, Wire lengths = {});

}  // namespace norma
