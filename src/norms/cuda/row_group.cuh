// The threads that share a row, and what they add up together. Every sum has one order.
#pragma once

#include <cstdint>

#include "device/cuda/device.cuh"

namespace norma::cuda {

template <int kValues>
__device__ __forceinline__ void add_across(float (&v)[kValues], int distance) {
#pragma unroll
  for (int k = 0; k < kValues; ++k) v[k] += __shfl_xor_sync(kAll, v[k], distance);
}

template <int kValues>
__device__ __forceinline__ void sum_over_warp(float (&v)[kValues]) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance >>= 1) add_across(v, distance);
}

// Over neighbouring lanes of a warp: a power of two.
template <int kValues>
__device__ __forceinline__ void sum_over_lanes(float (&v)[kValues], int lanes) {
  for (int distance = lanes >> 1; distance > 0; distance >>= 1) add_across(v, distance);
}

// A block of `groups` groups of threads: of whole warps, or several in a warp.
struct RowMap {
  int lanes = 0;  // threads of a group: a multiple of kWarp, or a power of two below
  int groups = 0;

  __host__ __device__ int threads() const { return lanes * groups; }
};

template <int kValues>
class RowGroup {
 public:
  struct Shared {
    float4 sums[2][kValues][2 * kMostWarps / 4];  // each group has places for a multiple of four warps
  };

  // All threads of the block together.
  __device__ __forceinline__ RowGroup(RowMap map, Shared& shared)
      : shared_(shared),
        lanes_(map.lanes),
        index_(static_cast<int>(threadIdx.x) / map.lanes),
        lane_(static_cast<int>(threadIdx.x) - index_ * map.lanes),
        quads_((map.lanes / kWarp + 3) / 4) {
    if (lanes_ <= kWarp) return;
    float* const all = reinterpret_cast<float*>(&shared);
    for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(sizeof(Shared) / sizeof(float));
         i += map.threads()) {
      all[i] = 0.0f;
    }
    __syncthreads();
  }

  __device__ __forceinline__ int index() const { return index_; }
  __device__ __forceinline__ int lane() const { return lane_; }

  // Every thread of the group gets the sums over the group. All threads of a warp together.
  __device__ __forceinline__ void sum(float (&v)[kValues]) {
    if (lanes_ < kWarp) return sum_over_lanes(v, lanes_);
    sum_over_warp(v);
    if (lanes_ == kWarp) return;
    // Two buffers in turn: who writes to one again has passed a barrier that everybody reached after reading it.
    if ((threadIdx.x & (kWarp - 1)) == 0) {
#pragma unroll
      for (int k = 0; k < kValues; ++k) {
        reinterpret_cast<float*>(shared_.sums[turn_][k] + index_ * quads_)[lane_ / kWarp] = v[k];
      }
    }
    asm volatile("bar.sync %0, %1;" ::"r"(1 + index_), "r"(lanes_) : "memory");
#pragma unroll
    for (int k = 0; k < kValues; ++k) v[k] = 0.0f;
    for (int quad = 0; quad < quads_; ++quad) {
#pragma unroll
      for (int k = 0; k < kValues; ++k) {
        const float4 four = shared_.sums[turn_][k][index_ * quads_ + quad];
        v[k] += (four.x + four.y) + (four.z + four.w);
      }
    }
    turn_ ^= 1;
  }

 private:
  Shared& shared_;
  int lanes_, index_, lane_, quads_;
  int turn_ = 0;
};

}  // namespace norma::cuda
