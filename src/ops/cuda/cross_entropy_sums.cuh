// Log-sum-exp of a row of logits, found in one pass.
#pragma once

#include <cmath>

#include "device/cuda/device.cuh"

namespace norma::cuda {

// exp(x) for x <= 0. Logits of 8 bits do not need all 24 of the result, and rows of many classes are bound by this.
template <typename T>
__device__ __forceinline__ float exponential(float x) {
  return sizeof(T) == 4 ? expf(x) : __expf(x);
}

// Of the logits that a thread, a warp or a block has met: the largest, the sum of exp(z - largest), the sum.
template <typename T>
struct RowSums {
  float largest = -INFINITY, exponentials = 0.0f, total = 0.0f;

  // exp(-infinity - -infinity) would be NaN where nothing but -infinity has been met.
  __device__ static __forceinline__ float shift_of(float top) { return top == -INFINITY ? 0.0f : top; }

  template <int V>
  __device__ __forceinline__ void add(const float (&z)[V]) {
    float top = largest;
#pragma unroll
    for (int j = 0; j < V; ++j) top = fmaxf(top, z[j]);
    const float shift = shift_of(top);
    if (top > largest) exponentials *= expf(largest - shift);
    largest = top;
#pragma unroll
    for (int j = 0; j < V; ++j) {
      exponentials += exponential<T>(z[j] - shift);
      total += z[j];
    }
  }

  __device__ __forceinline__ void merge(const RowSums& other) {
    const float top = fmaxf(largest, other.largest), shift = shift_of(top);
    exponentials = exponentials * expf(largest - shift) + other.exponentials * expf(other.largest - shift);
    largest = top;
    total += other.total;
  }

  // Lane 0 has the result that counts: those of others may differ in the last bit.
  __device__ __forceinline__ void merge_warp() {
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance >>= 1) {
      RowSums other;
      other.largest = __shfl_xor_sync(kAll, largest, distance);
      other.exponentials = __shfl_xor_sync(kAll, exponentials, distance);
      other.total = __shfl_xor_sync(kAll, total, distance);
      merge(other);
    }
  }

  __device__ __forceinline__ float lse() const { return largest == -INFINITY ? NAN : largest + logf(exponentials); }
};

}  // namespace norma::cuda
