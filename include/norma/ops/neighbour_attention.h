// Attention over the neighbours of each node (GAT, Velickovic et al. 2018, arXiv 1710.10903):
//   score(i, j) = leaky(query[i] + key[j]), y[i] = sum over edges (i, j) of softmax over j of score(i, j) times x[j]
#pragma once

#include "norma/graph/op.h"

namespace norma {

struct NeighbourAttentionOptions {
  std::int64_t heads = 1;
  double slope = 0.2;  // leaky(z) = z > 0 ? z : slope z
};

// in: x[nodes, heads * width], query and key [nodes, heads], edges as for NeighbourSum
// out: y[nodes, heads * width], log of the sums of exponentials [nodes, heads]. A node without neighbours has 0 in
// both.
class NeighbourAttention final : public Op {
 public:
  explicit NeighbourAttention(NeighbourAttentionOptions options) : options_(options) {}
  const NeighbourAttentionOptions& options() const { return options_; }

  std::string_view name() const override { return "neighbour_attention"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool optional_output(int out) const override { return out == 1; }

 private:
  NeighbourAttentionOptions options_;
};

// in: those of NeighbourAttention, y, the logs, dy; out: dx, dquery, dkey. Scores are computed again, so nothing is
// kept for each edge; every edge being there in both directions, a node finds all that it has to add up among its own.
class NeighbourAttentionBackward final : public Op {
 public:
  explicit NeighbourAttentionBackward(NeighbourAttentionOptions options) : options_(options) {}
  const NeighbourAttentionOptions& options() const { return options_; }

  std::string_view name() const override { return "neighbour_attention_backward"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;

 private:
  NeighbourAttentionOptions options_;
};

Wire neighbour_attention(Wire x, Wire query, Wire key, Wire edges, const NeighbourAttentionOptions& options);

}  // namespace norma
