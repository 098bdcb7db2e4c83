// Graphs for tests of ops over neighbours and segments.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "check.h"

namespace norma::test {

using Edges = std::vector<std::int32_t>;  // [2, count]

inline Edges sorted_pairs(std::vector<std::pair<std::int32_t, std::int32_t>> pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  Edges edges;
  for (const auto& [node, other] : pairs) edges.push_back(node);
  for (const auto& [node, other] : pairs) edges.push_back(other);
  return edges;
}

// So many random edges in both directions between `nodes`, one hub that all others know, and the last node alone.
inline Edges hub_edges(std::int64_t nodes, std::uint64_t random) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  const RandomStream stream(1, "edges");
  const auto among = static_cast<std::uint32_t>(std::max<std::int64_t>(1, nodes - 1));
  for (std::uint64_t i = 0; i < random; ++i) {
    const auto a = static_cast<std::int32_t>(stream.below(2 * i, among)),
               b = static_cast<std::int32_t>(stream.below(2 * i + 1, among));
    pairs.insert(pairs.end(), {{a, b}, {b, a}});
  }
  for (std::int32_t node = 1; node + 1 < nodes; ++node) pairs.insert(pairs.end(), {{0, node}, {node, 0}});
  return sorted_pairs(std::move(pairs));
}

// With room for `spare` pairs that are not there.
inline Edges with_room(const Edges& edges, std::int64_t nodes, std::size_t spare) {
  Edges roomy(edges.begin(), edges.begin() + static_cast<std::ptrdiff_t>(edges.size() / 2));
  roomy.insert(roomy.end(), spare, static_cast<std::int32_t>(nodes));
  roomy.insert(roomy.end(), edges.begin() + static_cast<std::ptrdiff_t>(edges.size() / 2), edges.end());
  roomy.insert(roomy.end(), spare, static_cast<std::int32_t>(nodes));
  return roomy;
}

inline Type edges_type(const Edges& edges) { return {{2, static_cast<std::int64_t>(edges.size() / 2)}, DType::i32}; }

// Runs a plan with these ids on so many threads and returns a tensor.
inline std::vector<float> run_with_ids(Graph& g, const std::string& name, const Edges& ids, const std::string& out,
                                       int threads) {
  CpuSession session(plain_plan(g), {.threads = threads});
  randomise_all(session);
  session.write<std::int32_t>(name, ids, 0);
  session.run();
  const std::span<float> y = session.tensor<float>(out);
  return {y.begin(), y.end()};
}

}  // namespace norma::test
