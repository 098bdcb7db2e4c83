// Sums over neighbours in shared memory: a block has some channels of all nodes of a member there, times `right`, so
// that rows leave memory once instead of coming from the second cache for every edge. For members whose nodes fit and
// that fill the card together. f32.
#pragma once

#include "norma/core/trial.h"
#include "ops/cuda/neighbours.cuh"

namespace norma::cuda {

constexpr int kSlice = 8, kSliceV = 4, kSliceLanes = kSlice / kSliceV;  // channels of a block and of a lane
constexpr int kSliceThreads = 512, kSliceTeams = kSliceThreads / kSliceLanes, kSliceAtOnce = 8;
using FirstEdge = unsigned short;

// Of a block, with `more` bytes for each node; a multiple of 16.
constexpr std::int64_t slice_bytes(std::int64_t nodes, std::int64_t more = 0) {
  const std::int64_t each = kSlice * std::int64_t{sizeof(float)} + more;
  return round_up(nodes * each + (nodes + 1) * std::int64_t{sizeof(FirstEdge)}, 16);
}

inline bool slices_pay(const NeighbourRows& rows, const Members& members, std::int64_t more = 0) {
  constexpr std::int64_t kMostBytes = 115712, kFewestBlocks = 264;    // two to a multiprocessor
  constexpr std::int64_t kMostEdges = 8, kLastEdge = FirstEdge(~0u);  // of a node: every slice reads edges again
  return rows.width % kSlice == 0 && slice_bytes(rows.nodes, more) <= kMostBytes && rows.count <= kLastEdge &&
         rows.count <= kMostEdges * rows.nodes && rows.width / kSlice * members.count >= kFewestBlocks;
}

// The slice of x from channel `column` on, and where the edges of each node begin; by all threads of the block.
__device__ __forceinline__ void hold_slice(const NeighbourRows& rows, std::byte* member, int column, float* slice,
                                           FirstEdge* first) {
  const int nodes = static_cast<int>(rows.nodes), count = static_cast<int>(rows.count);
  const int thread = static_cast<int>(threadIdx.x);
  const float* const x = at<const float>(member, rows.x) + column;
  const float* const right = at<const float>(member, rows.right);
  const std::int32_t* const from = at<const std::int32_t>(member, rows.edges);
  for (int i = thread; i < nodes * kSliceLanes; i += kSliceThreads) {
    const float* const row = x + i / kSliceLanes * rows.width + i % kSliceLanes * kSliceV;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(slice + i * kSliceV))),
                 "l"(row)
                 : "memory");
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int i = thread; i <= nodes; i += kSliceThreads) first[i] = 0;
  __syncthreads();
  for (int edge = thread; edge <= count; edge += kSliceThreads) {
    const int before = edge == 0 ? -1 : from[edge - 1], here = edge == count ? nodes : from[edge];
    for (int i = max(before, -1) + 1; i <= min(here, nodes); ++i) first[i] = static_cast<FirstEdge>(edge);
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  for (int i = thread; right != nullptr && i < nodes * kSliceLanes; i += kSliceThreads) {  // what it brought itself
    float values[kSliceV];
    load<float, kSliceV>(slice + i * kSliceV, values);
    const float by = right[i / kSliceLanes];
#pragma unroll
    for (int j = 0; j < kSliceV; ++j) values[j] *= by;
    store<float, kSliceV>(slice + i * kSliceV, values);
  }
  __syncthreads();
}

// The sum of a node's neighbours in the channels from `lane` on, in the order of its edges.
__device__ __forceinline__ void sum_in_slice(const NeighbourRows& rows, const std::int32_t* to, const float* slice,
                                             const FirstEdge* first, int node, int lane, float (&sum)[kSliceV]) {
  const int nodes = static_cast<int>(rows.nodes), end = first[node + 1];
  for (int edge = first[node]; edge < end; edge += kSliceAtOnce) {
    int place[kSliceAtOnce];
#pragma unroll
    for (int j = 0; j < kSliceAtOnce; ++j) place[j] = to[min(edge + j, end - 1)];
#pragma unroll
    for (int j = 0; j < kSliceAtOnce; ++j) {
      if (edge + j >= end) continue;
      float values[kSliceV];
      const bool known = place[j] >= 0 && place[j] < nodes;
      load<float, kSliceV>(slice + (known ? place[j] : 0) * kSlice + lane, values);
#pragma unroll
      for (int k = 0; k < kSliceV; ++k) sum[k] += known ? values[k] : nanf("");
    }
  }
}

}  // namespace norma::cuda
