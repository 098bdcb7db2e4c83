// What kernels share whose pixels the copy engine gathers (its im2col mode): one warp brings boxes of 64 channels to a
// ring of stages, warpgroups multiply. A box begins at a pixel, goes along the lines of the padded image that a tap
// sees, and on to the next image.
#pragma once

#include "ops/cuda/convolution_im2col.h"
#include "ops/cuda/hopper_product.cuh"

namespace norma::cuda::im2col {

using product::arrive;
using product::arrive_expecting;
using product::Element;
using product::make_barrier;
using product::wait_for;

constexpr int kChannels = 64, kDepth = kIm2colDepth;
constexpr int kRowBytes = kChannels * 2;  // of a pixel, or of a row of a tile
constexpr int kRoom = 225 * 1024;         // for tiles, of the shared memory of a block
constexpr int kMoreRows = 2,
              kLeftOut = 8;  // of a box of rows; how many rows it takes in shared memory, to begin the next at 1024
constexpr unsigned kNextRow = kRowBytes / 16;  // of descriptors

constexpr int stages_for(int bytes, int taken) { return (kRoom - taken) / bytes < 8 ? (kRoom - taken) / bytes : 8; }

// Where a role is among the stages: each has a barrier that says full and one that says empty.
template <int kStages>
struct Ring {
  unsigned full_barriers;
  int stage = 0;
  unsigned phase = 0;

  __device__ __forceinline__ unsigned full() const { return full_barriers + 8 * stage; }
  __device__ __forceinline__ unsigned empty(int of) const { return full_barriers + 8 * (kStages + of); }
  __device__ __forceinline__ void next() {
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
  __device__ __forceinline__ void skip(int steps) {
    const int reached = stage + steps;
    phase ^= static_cast<unsigned>(reached / kStages) & 1;
    stage = reached % kStages;
  }
  // Waits until the stage may be written, and says how much will come.
  __device__ __forceinline__ void open(unsigned bytes) const {
    wait_for(empty(stage), phase ^ 1);
    arrive_expecting(full(), bytes);
  }
};

// By one thread: `readers` warps release a stage.
template <int kStages>
__device__ __forceinline__ void make_ring(unsigned barriers, unsigned readers) {
  for (int stage = 0; stage < kStages; ++stage) {
    make_barrier(barriers + 8 * stage, 1);
    make_barrier(barriers + 8 * (kStages + stage), readers);
  }
}

// Coordinates of a box's first pixel, where the first tap sees it.
struct Corner {
  int x, y, image;
};

__device__ __forceinline__ Corner corner_of(int position, int line, int height, int stride, int padding) {
  const int lines = position / line, image = lines / height;
  return {(position - lines * line) * stride - padding, (lines - image * height) * stride - padding, image};
}

// Pixels from `corner` on, moved by a tap.
__device__ __forceinline__ void bring_pixels(unsigned to, const CUtensorMap& map, int channel, const Corner& corner,
                                             int member, int across, int down, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5, %6}], [%7], {%8, %9, %10};" ::"r"(to),
      "l"(&map), "r"(channel), "r"(corner.x), "r"(corner.y), "r"(corner.image), "r"(member), "r"(barrier),
      "h"(static_cast<std::uint16_t>(across)), "h"(static_cast<std::uint16_t>(down)), "h"(std::uint16_t{0})
      : "memory");
}

// A box of weights [member, tap, in, out].
__device__ __forceinline__ void bring_weights(unsigned to, const CUtensorMap& map, int out, int in, int tap, int member,
                                              unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(to),
      "l"(&map), "r"(out), "r"(in), "r"(tap), "r"(member), "r"(barrier)
      : "memory");
}

}  // namespace norma::cuda::im2col
