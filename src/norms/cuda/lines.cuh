// How kernels that sum over rows are laid out: blocks of kLineRows warps, each block a tile of columns of one sample
// and one part of the sample's rows.
#pragma once

#include "device/cuda/device.cuh"
#include "ops/cuda/fold.h"

namespace norma::cuda {

constexpr int kLineRows = 8;

struct LineLayout {
  std::int64_t samples = 1, rows = 0, width = 0;  // rows of a sample
  std::int64_t tiles = 0, parts = 0, rows_per_part = 0;

  LineLayout() = default;
  LineLayout(std::int64_t sample_count, std::int64_t rows_of_sample, std::int64_t columns)
      : samples(sample_count), rows(rows_of_sample), width(columns), tiles(divide_up(columns, kWarp)) {
    parts = line_parts(tiles * samples, rows);
    rows_per_part = divide_up(rows, parts);
  }
  std::int64_t lines() const { return samples * parts; }
  dim3 grid(const Members& members) const {
    return dim3(static_cast<unsigned>(tiles * lines()), static_cast<unsigned>(members.count));
  }
  static dim3 block() { return dim3(kWarp, kLineRows); }
};

// Where a thread of such a block is.
struct LinePlace {
  std::int64_t column, line, sample;
  std::int64_t begin, end;  // rows of the block, within the sample

  __device__ __forceinline__ explicit LinePlace(const LineLayout& layout)
      : line(quotient(blockIdx.x, layout.tiles)), sample(quotient(line, layout.parts)) {
    column = (blockIdx.x - line * layout.tiles) * kWarp + threadIdx.x;
    begin = (line - sample * layout.parts) * layout.rows_per_part;
    end = begin + layout.rows_per_part < layout.rows ? begin + layout.rows_per_part : layout.rows;
  }
};

// The sum over the warps of a block, of each column; all threads get it, and shared memory may be used again at once.
__device__ __forceinline__ float sum_over_rows(float value, float (&shared)[kLineRows][kWarp]) {
  shared[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  float all = 0.0f;
#pragma unroll
  for (int row = 0; row < kLineRows; ++row) all += shared[row][threadIdx.x];
  __syncthreads();
  return all;
}

// Room in a kernel's scratch, in bytes from its start.
class ScratchRoom {
 public:
  std::int64_t floats(std::int64_t count) {
    const std::int64_t begin = bytes_;
    bytes_ += round_up(count * static_cast<std::int64_t>(sizeof(float)), 16);
    return begin;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

}  // namespace norma::cuda
