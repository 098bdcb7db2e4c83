// How sums of channels over positions are laid out: a thread has V neighbouring channels and some rows of one part of a
// sample's rows. Threads stand side by side along channels as far as there are any, so that narrow rows are read whole.
#pragma once

#include "device/cuda/device.cuh"
#include "ops/cuda/map.cuh"

namespace norma::cuda {

// dz of y = relu(z), as activation_backward has it.
__device__ __forceinline__ float through_relu(float z, float dy) {
  return z > 0.0f ? dy : isnan(z) ? z * dy : 0.0f * dy;
}

struct ChannelLines {
  std::int64_t samples = 1, rows = 0, width = 0;  // rows of a sample
  std::int64_t tiles = 0, parts = 0, rows_per_part = 0;
  int v = 1, across = 1;  // channels of a thread; threads along channels

  ChannelLines() = default;
  ChannelLines(std::int64_t sample_count, std::int64_t rows_of_sample, std::int64_t columns, int widest)
      : samples(sample_count), rows(rows_of_sample), width(columns), v(columns % widest == 0 ? widest : 1) {
    while (across < kWarp && across * v < columns) across *= 2;
    tiles = divide_up(columns, across * v);
    constexpr std::int64_t kBlocks = 528, kLeast = 8;  // blocks that fill the card; rows that make a thread worth it
    parts = rows / (down() * kLeast);
    if (parts > kBlocks / (tiles * samples)) parts = kBlocks / (tiles * samples);
    if (parts < 1) parts = 1;
    rows_per_part = divide_up(rows, parts);
  }
  int down() const { return kThreads / across; }
  std::int64_t lines() const { return samples * parts; }
  dim3 grid(const Members& members) const {
    return dim3(static_cast<unsigned>(tiles * lines()), static_cast<unsigned>(members.count));
  }
  dim3 block() const { return dim3(static_cast<unsigned>(across), static_cast<unsigned>(down())); }
};

struct ChannelLinePlace {
  std::int64_t column, line, sample;
  std::int64_t begin, end;  // rows of the block, within the sample
  bool has;                 // channels at all

  __device__ __forceinline__ explicit ChannelLinePlace(const ChannelLines& layout)
      : line(quotient(blockIdx.x, layout.tiles)), sample(quotient(line, layout.parts)) {
    column = ((blockIdx.x - line * layout.tiles) * layout.across + threadIdx.x) * layout.v;
    begin = (line - sample * layout.parts) * layout.rows_per_part;
    end = begin + layout.rows_per_part < layout.rows ? begin + layout.rows_per_part : layout.rows;
    has = column < layout.width;
  }
};

// Sums over the threads of a block that have the same channels, in one order: those of a warp first. Threads of the
// first row get them, and shared memory may be used again at once.
template <int V>
__device__ __forceinline__ void sum_down(float (&values)[V], float (&shared)[kThreads * V]) {
  const unsigned across = blockDim.x, thread = threadIdx.y * across + threadIdx.x;
  for (unsigned distance = kWarp / 2; distance >= across; distance /= 2) {
#pragma unroll
    for (int j = 0; j < V; ++j) values[j] += __shfl_xor_sync(kAll, values[j], distance);
  }
  const unsigned warp = thread / kWarp, lane = thread % kWarp;
  if (lane < across) {
#pragma unroll
    for (int j = 0; j < V; ++j) shared[(warp * across + lane) * V + j] = values[j];
  }
  __syncthreads();
  if (threadIdx.y == 0) {
#pragma unroll
    for (unsigned other = 1; other < kThreads / kWarp; ++other) {
#pragma unroll
      for (int j = 0; j < V; ++j) values[j] += shared[(other * across + threadIdx.x) * V + j];
    }
  }
  __syncthreads();
}

}  // namespace norma::cuda
