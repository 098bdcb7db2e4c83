// What sums over neighbours share: a block brings the edges of its nodes to shared memory together, then lanes of a
// warp add up the rows of one node's neighbours in the order of its edges, as the CPU does, some rows on their way at
// once. No atomics, one order; how nodes are divided among blocks does not show in what they get.
#pragma once

#include "device/cuda/device.cuh"
#include "ops/cuda/edges.cuh"

namespace norma::cuda {

// The sum of right[j] x[j] over the edges (i, j) of each node i.
struct NeighbourRows {
  std::int64_t x = 0, edges = 0;  // [nodes, width], [2, count]
  std::int64_t right = kAbsent;   // [nodes], f32; absent: 1
  std::int64_t nodes = 0, width = 0, count = 0;
};

constexpr int kHeldEdges = 1024;  // of a block; more are read from memory by each team
constexpr int kEdgesAtOnce = 4;
constexpr int kMostRounds = 4;  // nodes that a team takes one after the other

// Nodes of a block, for each team of lanes: more share what it costs to find their edges, fewer keep the card busy.
inline int neighbour_rounds(const NeighbourRows& rows, int teams, std::int64_t columns, std::int64_t members) {
  constexpr std::int64_t kBusyBlocks = 2048;
  const std::int64_t busy = rows.nodes * columns * members / (teams * kBusyBlocks);
  const std::int64_t held = kHeldEdges * rows.nodes / (2 * teams * (rows.count + 1));  // twice the mean still fits
  const std::int64_t rounds = busy < held ? busy : held;
  return static_cast<int>(rounds < 1 ? 1 : rounds < kMostRounds ? rounds : kMostRounds);
}

// An edge's neighbour and its factor, NaN if there is no such neighbour.
struct alignas(8) Neighbour {
  int place;
  float by;
};

__device__ __forceinline__ Neighbour neighbour_at(int place, std::int64_t nodes, const float* right) {
  if (place < 0 || place >= nodes) return {0, nanf("")};
  return {place, right == nullptr ? 1.0f : right[place]};
}

template <int kNodes>
struct BlockEdges {
  int begin, end;                             // of all nodes of the block
  int first[kNodes + 1];                      // of each, and where the last one's end
  Neighbour held[kHeldEdges + kEdgesAtOnce];  // the last ones are read and not used
};

// Edges of the nodes [node, node + count), by all threads of the block. Of a list that is not sorted some edges count
// for no node.
template <int kNodes>
__device__ __forceinline__ void hold_edges(const NeighbourRows& rows, std::byte* member, int node, int count,
                                           BlockEdges<kNodes>& edges) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const std::int32_t* const from = at<const std::int32_t>(member, rows.edges);
  const std::int32_t* const to = from + rows.count;
  const float* const right = at<const float>(member, rows.right);
  if (thread < 2 * kWarp) {
    const bool last = thread >= kWarp;
    const int place = first_of(from, rows.count, std::int64_t{node} + (last ? count : 0));
    if (thread % kWarp == 0) (last ? edges.end : edges.begin) = place;
  }
  for (int i = thread; i <= count; i += threads) edges.first[i] = 0;
  __syncthreads();
  const int begin = edges.begin, end = edges.end;
  for (int edge = begin + thread; edge <= end; edge += threads) {
    const int before = edge == begin ? -1 : from[edge - 1] - node, here = edge == end ? count : from[edge] - node;
    if (edge < end && edge - begin < kHeldEdges) edges.held[edge - begin] = neighbour_at(to[edge], rows.nodes, right);
    for (int i = max(before, -1) + 1; i <= min(here, count); ++i) edges.first[i] = edge;
  }
  __syncthreads();
}

// sum += the rows of edges [edge, end), which lie `pitch` bytes apart; `neighbour` says whose they are, and something
// for edges behind the last.
template <class T, int V, class Find>
__device__ __forceinline__ void add_rows(const std::byte* x, unsigned pitch, int edge, int end, const Find& neighbour,
                                         float (&sum)[V]) {
#pragma unroll 1
  for (; edge < end; edge += kEdgesAtOnce) {
    Raw<T, V> raw[kEdgesAtOnce];
    float by[kEdgesAtOnce];
#pragma unroll
    for (int j = 0; j < kEdgesAtOnce; ++j) {
      const Neighbour one = neighbour(edge + j);
      by[j] = one.by;
      const std::byte* const row = x + std::uint64_t{static_cast<unsigned>(one.place)} * pitch;
      if (edge + j < end) raw[j] = load_raw<T, V>(reinterpret_cast<const T*>(row));
    }
#pragma unroll
    for (int j = 0; j < kEdgesAtOnce; ++j) {
      if (edge + j >= end) continue;
      float values[V];
      unpack<T, V>(raw[j], values);
#pragma unroll
      for (int k = 0; k < V; ++k) sum[k] = fmaf(by[j], values[k], sum[k]);
    }
  }
}

// The sum of the block's node `index`; `x` is where the first row has the channels of this lane.
template <class T, int V, int kNodes>
__device__ __forceinline__ void sum_neighbours(const NeighbourRows& rows, std::byte* member, const std::byte* x,
                                               const BlockEdges<kNodes>& edges, int index, float (&sum)[V]) {
  auto pitch = static_cast<unsigned>(rows.width * sizeof(T));
  asm("" : "+l"(x), "+r"(pitch));  // kept in registers, and not made again for every edge
  __builtin_assume(__isGlobal(x));
  const int begin = edges.begin, first = edges.first[index], end = edges.first[index + 1];
  const int held = min(end, begin + kHeldEdges);
  add_rows<T, V>(
      x, pitch, first, held, [&](int edge) { return edges.held[edge - begin]; }, sum);
  if (end <= begin + kHeldEdges) return;
  const std::int32_t* const to = at<const std::int32_t>(member, rows.edges) + rows.count;
  const float* const right = at<const float>(member, rows.right);
  const auto read = [&](int edge) { return neighbour_at(to[min(edge, end - 1)], rows.nodes, right); };
  add_rows<T, V>(x, pitch, max(first, held), end, read, sum);
}

}  // namespace norma::cuda
