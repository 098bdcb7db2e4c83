// Multi-head attention: context = softmax(scale q k^T, masked) v per head, without ever holding the [queries, keys]
// scores of a head in memory.
#pragma once

#include <optional>

#include "norma/graph/op.h"
#include "norma/ops/softmax.h"

namespace norma {

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;  // 0: as many as heads; fewer: each serves heads / kv_heads neighbouring query heads
  Mask mask = Mask::causal;
  std::optional<double> scale = {};  // of the scores; 1 / sqrt(width of a head) when not given
};

// How queries, keys and values arrive.
enum class QkvLayout {
  separate,  // q[batch, queries, heads * width], k and v[batch, keys, kv_heads * width]
  packed,    // one wire [batch, time, (heads + 2 kv_heads) * width]: all queries, all keys, all values of a time step
};

// Inputs: q, k, v or qkv, and optionally lengths i32[batch]: keys from lengths[b] on are hidden from every query of
// sample b. Outputs: context[batch, queries, heads * width] and the log-sum-exp of each row of scaled scores
// [batch, heads, queries], which is all that the backward pass saves. A row that sees no key has context 0 and
// log-sum-exp -infinity. What is hidden has no influence, not even as NaN.
class Attention final : public Op {
 public:
  Attention(QkvLayout layout, AttentionOptions options) : layout_(layout), options_(options) {}
  QkvLayout layout() const { return layout_; }
  const AttentionOptions& options() const { return options_; }

  std::string_view name() const override { return "attention"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override;  // all but the log-sum-exps
  bool optional_output(int out) const override { return out == 1; }

 private:
  QkvLayout layout_;
  AttentionOptions options_;
};

// Whether the backward pass is given the context. It follows from the other inputs; a device that can read it faster
// than compute it again asks for it by the rewrite attention_context.
enum class SavedContext { none, given };

// Inputs: those of Attention, its context if given, its log-sum-exp, and the gradient by its context. Outputs: dq, dk,
// dv or dqkv. Probabilities are computed again block by block.
class AttentionBackward final : public Op {
 public:
  AttentionBackward(QkvLayout layout, AttentionOptions options, SavedContext context = SavedContext::none)
      : layout_(layout), options_(options), context_(context) {}

  QkvLayout layout() const { return layout_; }
  const AttentionOptions& options() const { return options_; }
  SavedContext context() const { return context_; }
  std::string_view name() const override { return "attention_backward"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override;
  bool optional_output(int) const override { return layout_ == QkvLayout::separate; }

 private:
  QkvLayout layout_;
  AttentionOptions options_;
  SavedContext context_;
};

// Queries and keys may differ in number (cross-attention) under Mask::full. A scale that is data: multiply q by it.
Wire attention(Wire q, Wire k, Wire v, const AttentionOptions& options, Wire lengths = {});
Wire attention_packed(Wire qkv, const AttentionOptions& options, Wire lengths = {});

// Attention whose scores continue those of the layer below (RealFormer, He et al. 2020):
// scores = scale q k^T + previous; context = softmax(masked scores) v. The mask is not carried. Scores are real wires
// [batch, heads, queries, keys] here, and gradients flow through them.
struct ScoredAttention {
  Wire context;  // [batch, queries, heads * width]
  Wire scores;   // [batch, heads, queries, keys]
};
ScoredAttention attention_with_scores(Wire q, Wire k, Wire v, const AttentionOptions& options, Wire previous = {},
                                      Wire lengths = {});

}  // namespace norma
