// Token embedding y[r] = table[ids[r]], and positions to add to it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "norma/graph/op.h"

namespace norma {

class Graph;

// Inputs: table[vocabulary, d], ids i32[rows...] and, if they are added here, positions[time, d] where ids are
// i32[..., time]; output [rows..., d]. An id outside the vocabulary reads nothing: its row is NaN and it gives no
// gradient. Hosts check ids with check_tokens before they reach a plan.
class Embedding final : public Op {
 public:
  explicit Embedding(bool twin = false) : twin_(twin) {}
  std::string_view name() const override { return "embedding"; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  std::shared_ptr<const Op> with_twin() const override { return twin_ ? nullptr : std::make_shared<Embedding>(true); }
  bool optional_output(int) const override { return twin_; }

 private:
  bool twin_;
};

// dtable[v] = sum of dy[r] over the rows with ids[r] = v, in order of rows: the same bits on any number of threads.
// Inputs: ids i32[rows...], dy[rows..., d] and perhaps [vocabulary, d], to which the sums are added; output
// [vocabulary, d].
class EmbeddingBackward final : public Op {
 public:
  explicit EmbeddingBackward(std::int64_t vocabulary) : vocabulary_(vocabulary) {}
  std::int64_t vocabulary() const { return vocabulary_; }
  std::string_view name() const override { return "embedding_backward"; }
  std::string attributes() const override { return "vocabulary=" + std::to_string(vocabulary_); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  void choose(Widths& widths) const override;  // dy as it comes
  bool can_overwrite(int, int in) const override { return in == 2; }

 private:
  std::int64_t vocabulary_;
};

Wire embedding(Wire table, Wire ids);

// Throws Error naming position, id and vocabulary for the first id outside 0..vocabulary-1.
void check_tokens(std::span<const std::int32_t> ids, std::int64_t vocabulary);

// x[..., time, d] + positions[at least time, d]: learned or fixed positions, the first `time` of them.
Wire add_positions(Wire x, Wire positions);

// The constant [time, d] of Vaswani et al. 2017: channel 2i holds sin(t / 10000^(2i/d)), channel 2i + 1 the cosine.
Wire sinusoidal_positions(Graph& graph, std::string_view name, std::int64_t time, std::int64_t d,
                          DType dtype = DType::f32);

}  // namespace norma
