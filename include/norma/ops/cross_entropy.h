// Softmax cross-entropy, alone and fused with the output projection so that [rows, vocabulary] logits never exist.
#pragma once

#include <cstdint>

#include "norma/graph/op.h"
#include "norma/ops/matmul.h"

namespace norma {

// loss = mean over counted rows of (1-s) (lse - z_target) + s (lse - mean(z)), lse = log sum exp z, s = smoothing.
// Rows whose target is `ignore` are not counted; no counted row at all gives NaN. A target outside the vocabulary
// gives a NaN loss and NaN gradients for its row, never a stray access.
struct CrossEntropyOptions {
  std::int32_t ignore = -100;
  Transpose weight = Transpose::no;  // of the projection: W[d, V], or yes: W[V, d] (tied embedding)
};

// Inputs logits[..., V], targets i32[...], smoothing [1]; outputs loss [1] and lse [...].
class CrossEntropy final : public Op {
 public:
  explicit CrossEntropy(CrossEntropyOptions options) : options_(options) {}
  const CrossEntropyOptions& options() const { return options_; }
  std::string_view name() const override { return "cross_entropy"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;

 private:
  CrossEntropyOptions options_;
};

// Inputs logits, targets, smoothing, lse, dloss [1]; output dlogits.
class CrossEntropyBackward final : public Op {
 public:
  explicit CrossEntropyBackward(CrossEntropyOptions options) : options_(options) {}
  const CrossEntropyOptions& options() const { return options_; }
  std::string_view name() const override { return "cross_entropy_backward"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool can_overwrite(int, int in) const override { return in == 0; }

 private:
  CrossEntropyOptions options_;
};

// Inputs x[..., d], W, targets, smoothing; outputs loss [1] and lse [...]. Logits live in a worker's scratch, a block
// of rows at a time.
class LinearCrossEntropy final : public Op {
 public:
  explicit LinearCrossEntropy(CrossEntropyOptions options) : options_(options) {}
  const CrossEntropyOptions& options() const { return options_; }
  std::string_view name() const override { return "linear_cross_entropy"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int in) const override { return in < 2; }
  void choose(Widths& widths) const override;

 private:
  CrossEntropyOptions options_;
};

// Inputs x, W, targets, smoothing, lse, dloss; outputs dx and dW. Logits are computed again, a few blocks at a time.
class LinearCrossEntropyBackward final : public Op {
 public:
  explicit LinearCrossEntropyBackward(CrossEntropyOptions options) : options_(options) {}
  const CrossEntropyOptions& options() const { return options_; }
  std::string_view name() const override { return "linear_cross_entropy_backward"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int in) const override { return in < 2; }
  void choose(Widths& widths) const override;

 private:
  CrossEntropyOptions options_;
};

// Both at once, where the gradient by the loss is known beforehand: logits are computed a single time.
// Inputs x, W, targets, smoothing, dloss; outputs loss, lse, dx and dW.
class LinearCrossEntropyGradient final : public Op {
 public:
  explicit LinearCrossEntropyGradient(CrossEntropyOptions options) : options_(options) {}
  const CrossEntropyOptions& options() const { return options_; }
  std::string_view name() const override { return "linear_cross_entropy_gradient"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int in) const override { return in < 2; }
  void choose(Widths& widths) const override;

 private:
  CrossEntropyOptions options_;
};

// Smoothing may be an empty wire (0).
Wire cross_entropy(Wire logits, Wire targets, Wire smoothing = {}, CrossEntropyOptions options = {});
Wire linear_cross_entropy(Wire x, Wire weight, Wire targets, Wire smoothing = {}, CrossEntropyOptions options = {});

}  // namespace norma
