// What attention is doing, read off a few of its queries: the largest score and the mean entropy of its weights.
#pragma once

#include <functional>
#include <span>

#include "norma/graph/op.h"
#include "norma/ops/attention.h"

namespace norma {

// Inputs: those of the attention it watches. Output [heads, 2], put together on the host. It looks at up to kQueries
// queries, evenly spread over the first sample, in every head: cheap enough to be always on. Scores are scaled and
// before the mask's hiding; hidden keys do not count. Entropy in nats, averaged over the queries looked at. No
// gradient.
class AttentionProbe final : public Op {
 public:
  enum Index { logit_max, entropy, size };
  static constexpr std::int64_t kQueries = 8;

  AttentionProbe(QkvLayout layout, AttentionOptions options) : layout_(layout), options_(options) {}
  QkvLayout layout() const { return layout_; }
  const AttentionOptions& options() const { return options_; }
  std::string_view name() const override { return "attention_probe"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override;  // what it watches as it comes

 private:
  QkvLayout layout_;
  AttentionOptions options_;
};

constexpr int kMostAttentionProbes = 16;  // of one op

// Several probes of attentions that are alike, each with the same number of inputs, one after the other; an output for
// each. One launch where a device pays for launches: a probe reads next to nothing.
class AttentionProbes final : public Op {
 public:
  AttentionProbes(QkvLayout layout, AttentionOptions options, int count) : one_(layout, options), count_(count) {}
  const AttentionProbe& one() const { return one_; }
  int count() const { return count_; }
  std::string_view name() const override { return "attention_probes"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override;  // what they watch as it comes, all of it alike

 private:
  AttentionProbe one_;
  int count_;
};

// `inputs` are those of `count` attentions like `watched`.
Wires attention_probes(const Attention& watched, int count, std::span<const Wire> inputs);

Wire attention_probe(const Attention& watched, std::span<const Wire> inputs);

struct AttentionSummary {
  double logit_max = 0;
  double entropy = 0;
};
// `output(i)` is element i of a probe of so many heads.
AttentionSummary read_attention_probe(std::size_t heads, const std::function<double(std::size_t)>& output);

}  // namespace norma
