// The norm of all gradients together, what clipping makes of it, and gradients gathered over several batches.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "norma/graph/op.h"

namespace norma {

// Inputs: gradients of one dtype. Outputs: the sum of squares of each [n], and their total [1].
class SquaredSums final : public Op {
 public:
  std::string_view name() const override { return "squared_sums"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
};

// Inputs: a sum of squares [1] and a bound [1]. Outputs: its root, and min(1, bound / root); 1 where the bound is 0;
// not finite when the root is not.
class ClipScale final : public Op {
 public:
  std::string_view name() const override { return "clip_scale"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
};

// Inputs: a state, a gradient of its type, and a flag [1]. The state becomes the gradient where the flag is not 0, and
// the sum of both elsewhere.
class Accumulate final : public Op {
 public:
  std::string_view name() const override { return "accumulate"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  std::vector<Update> updates() const override { return {{0, 0}}; }
};

struct GradientNorm {
  Wire squares;  // of each gradient [n]
  Wire norm;     // [1]
  Wire scale;    // [1], what clipping multiplies gradients by
};

// The order of additions is fixed.
GradientNorm gradient_norm(std::span<const Wire> gradients, Wire clip);

// Gathers a gradient in the state "<name>/sum" and returns the sum so far; `first` [1] starts a new one.
Wire accumulate_gradient(Wire gradient, Wire first, std::string_view name);

}  // namespace norma
