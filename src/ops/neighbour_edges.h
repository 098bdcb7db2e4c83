// Edges of a graph in kernels: pairs sorted by the node, found for a block of them without a search.
#pragma once

#include <algorithm>
#include <cstdint>

#include "norma/core/error.h"
#include "norma/core/shape.h"
#include "norma/device/cpu/kernel.h"

namespace norma {

inline void check_edges(const Type& edges) {
  if (edges.dtype != DType::i32 || edges.shape.rank() != 2 || edges.shape[0] != 2)
    fail("edges must be i32[2, edges] but are {}", edges.str());
}

// A tile is a block of pairs, whatever their nodes: hubs with many neighbours and nodes with none are divided evenly.
// All pairs of a node belong to the tile that its first one lies in, so every sum has one order.
struct NeighbourTiles {
  std::int64_t nodes, count;
  Tiling tiling;

  NeighbourTiles(std::int64_t of_nodes, std::int64_t pairs, std::int64_t work)
      : nodes(of_nodes), count(pairs), tiling(std::max(of_nodes, pairs), std::max<std::int64_t>(1, 16384 / work)) {}

  // The first node of a tile: behind that of the last pair before it.
  std::int64_t first(const std::int32_t* from, std::int64_t tile) const {
    const std::int64_t pair = std::min(tiling.begin(tile), count);
    if (tile >= tiling.tiles) return nodes;
    return pair == 0 ? 0 : std::clamp<std::int64_t>(std::int64_t{from[pair - 1]} + 1, 0, nodes);
  }

  // each(node, first pair, pair behind the last) for the nodes of a tile, in order.
  template <typename Each>
  void visit(const std::int32_t* from, std::int64_t tile, const Each& each) const {
    std::int64_t pair = std::min(tiling.begin(tile), count);
    const std::int64_t end = first(from, tile + 1);
    for (std::int64_t node = first(from, tile); node < end; ++node) {
      while (pair < count && from[pair] < node) ++pair;
      const std::int64_t begin = pair;
      while (pair < count && from[pair] == node) ++pair;
      each(node, begin, pair);
    }
  }
};

}  // namespace norma
