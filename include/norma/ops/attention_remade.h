// Attention made again for its backward pass, together with that pass: one op where a device makes both at once.
#pragma once

#include "norma/ops/attention.h"

namespace norma {

// in: those of Attention, and the gradient by its context; out: the gradients of AttentionBackward, and then what
// Attention has, its context and log-sum-exps.
class AttentionRemade final : public Op {
 public:
  AttentionRemade(QkvLayout layout, AttentionOptions options) : layout_(layout), options_(options) {}

  QkvLayout layout() const { return layout_; }
  const AttentionOptions& options() const { return options_; }
  std::string_view name() const override { return "attention_remade"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override;  // all but the log-sum-exps

 private:
  QkvLayout layout_;
  AttentionOptions options_;
};

}  // namespace norma
