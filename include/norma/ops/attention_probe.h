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

Wire attention_probe(const Attention& watched, std::span<const Wire> inputs);

struct AttentionSummary {
  double logit_max = 0;
  double entropy = 0;
};
// `output(i)` is element i of a probe of so many heads.
AttentionSummary read_attention_probe(std::size_t heads, const std::function<double(std::size_t)>& output);

}  // namespace norma
