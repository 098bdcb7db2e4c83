// Forward, and by the image: the result [pixels, kColumns] is the sum over blocks of 64 channels and taps of
// [pixels moved by the tap, 64] times the tap's weights [64, kColumns]. Blocks walk over tiles of one member.
#pragma once

#include "ops/cuda/convolution_im2col.cuh"

namespace norma::cuda::im2col {

constexpr int kMostTaps = 9, kMostClasses = 4, kGroups = 2;

// The taps that one class of pixels sees, in the order of the sum: how far each moves, and its weights. Pixels of other
// classes see other taps where a gradient by a strided image is computed; otherwise there is one class.
struct Window {
  std::int32_t count = 0, row = 0, column = 0;  // remainders of the class
  std::uint8_t across[kMostTaps] = {}, down[kMostTaps] = {}, tap[kMostTaps] = {};
};

struct ImageLaunch {
  CUtensorMap image, weights;
  Members members = {};
  std::int64_t out = kAbsent;
  std::int32_t rows = 0, columns = 0;  // of the result of one class; positions that are no pixels count as well
  std::int32_t height = 1, width = 1, line = 1;     // pixels of one class; positions of a line
  std::int32_t stride = 1, padding = 0;             // from pixel to pixel, and before the first, where they are read
  std::int32_t step = 1;                            // from pixel to pixel where they are written
  std::int32_t blocks = 1;                          // of channels that are summed over
  std::int32_t across = 1, tiles = 1, classes = 1;  // tiles of a row of tiles, and of a class
  Window windows[kMostClasses];
};

// kAlone: warpgroups take turns at tiles, and one writes while the other multiplies; otherwise they share rows.
// kHeld: all weights stay in shared memory. kTaps: how many read one box.
template <bool kBack_, int kRows_, int kColumns_, bool kAlone_, bool kHeld_, int kTaps_>
struct ImageTile {
  static constexpr bool kBack = kBack_, kAlone = kAlone_, kHeld = kHeld_;
  static constexpr int kRows = kRows_, kColumns = kColumns_, kTaps = kTaps_;
  static constexpr int kParts = kRows / 64 / (kAlone ? 1 : kGroups);  // of 64 rows, of a warpgroup
  static constexpr int kThreads = kGroups * attention::kGroup + kWarp;
  static constexpr int kBoxRows = kRows + (kTaps > 1 ? kMoreRows : 0);
  static constexpr int kImageBytes = (kRows + (kTaps > 1 ? kLeftOut : 0)) * kRowBytes;
  static constexpr int kWeightBytes = kColumns * kRowBytes;
  static constexpr int kHeldBytes = kHeld ? kMostTaps * kWeightBytes : 0;
  static constexpr int kStageBytes = kImageBytes + (kHeld ? 0 : kWeightBytes);
  static constexpr int kStages = stages_for(kStageBytes, kHeldBytes);
  static constexpr int kSharedBytes = kHeldBytes + kStages * kStageBytes + 1024;
  static constexpr unsigned kArriving = kBoxRows * kRowBytes + (kHeld ? 0 : kWeightBytes);
  using Sums = float[kParts][1][kColumns / 8][4];
};

template <class T>
struct ImagePlace {
  const Window& window;
  int row, column;  // of the tile's first element
  __device__ __forceinline__ ImagePlace(const ImageLaunch& call, int tile) : window(call.windows[tile / call.tiles]) {
    tile -= tile / call.tiles * call.tiles;
    row = tile / call.across * T::kRows;
    column = tile % call.across * T::kColumns;
  }
  __device__ __forceinline__ int steps(const ImageLaunch& call) const { return call.blocks * window.count / T::kTaps; }
};

// The weights of one tap and block.
template <class T>
__device__ __forceinline__ void bring_factor(const ImageLaunch& call, unsigned to, int column, int block, int tap,
                                             unsigned barrier) {
  const int member = static_cast<int>(blockIdx.y);
  if constexpr (T::kBack) {
    bring_weights(to, call.weights, block * kDepth, column, tap, member, barrier);
  } else {
#pragma unroll
    for (int part = 0; part < T::kColumns / 64; ++part)
      bring_weights(to + part * attention::kTileBytes, call.weights, column + 64 * part, block * kDepth, tap, member,
                    barrier);
  }
}

template <class T>
__device__ __forceinline__ void bring_images(const ImageLaunch& call, Ring<T::kStages> ring, unsigned held,
                                             unsigned held_barrier) {
  const unsigned stages = held + T::kHeldBytes;
  if constexpr (T::kHeld) {
    const Window& window = call.windows[0];
    arrive_expecting(held_barrier, static_cast<unsigned>(call.blocks * window.count * T::kWeightBytes));
    for (int i = 0; i < call.blocks * window.count; ++i)
      bring_factor<T>(call, held + i * T::kWeightBytes, 0, i / window.count, window.tap[i % window.count],
                      held_barrier);
  }
  for (int tile = blockIdx.x; tile < call.tiles * call.classes; tile += gridDim.x) {
    const ImagePlace<T> place(call, tile);
    const Window& window = place.window;
    const Corner corner = corner_of(place.row, call.line, call.height, call.stride, call.padding);
    for (int block = 0; block < call.blocks; ++block) {
      for (int i = 0; i < window.count; i += T::kTaps) {
        ring.open(T::kArriving);
        const unsigned to = stages + ring.stage * T::kStageBytes;
        bring_pixels(to, call.image, block * kDepth, corner, static_cast<int>(blockIdx.y), window.across[i],
                     window.down[i], ring.full());
        if constexpr (!T::kHeld)
          bring_factor<T>(call, to + T::kImageBytes, place.column, block, window.tap[i], ring.full());
        ring.next();
      }
    }
  }
}

// One stage of one warpgroup: a and b are descriptors of its first rows and of the weights of the first tap.
template <class T>
__device__ __forceinline__ void issue_stage(typename T::Sums& c, unsigned a, unsigned b) {
  constexpr unsigned kStepB = T::kBack ? attention::kDepthByRows : attention::kDepthByColumns;
  if (!T::kBack) b = convolution::in_parts(b);
#pragma unroll
  for (int tap = 0; tap < T::kTaps; ++tap) {
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
#pragma unroll
      for (int part = 0; part < T::kParts; ++part)
        convolution::issue_product<true, T::kBack>(
            c[part], a + tap * kNextRow + part * attention::kNextTile + k * attention::kDepthByRows,
            b + tap * (T::kWeightBytes / 16) + k * kStepB);
    }
  }
}

// Sums of a warp, 16 rows from `row` on of each part, to pixels of the result.
template <class T>
__device__ __forceinline__ void write_pixels(const ImageLaunch& call, const typename T::Sums& c, const Window& window,
                                             int row, int column) {
  const int g = attention::MatrixLanes::g(), t = attention::MatrixLanes::t();
  Element* const out = at<Element>(base_of(call.members, blockIdx.y), call.out);
#pragma unroll
  for (int part = 0; part < T::kParts; ++part) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int position = row + part * 64 + 8 * half + g, lines = position / call.line,
                x = position - lines * call.line;
      const std::int64_t line = std::int64_t{lines} * call.step + window.row;
      Element* const to = out + ((line * call.width + x) * call.step + window.column) * call.columns + column + 8 * t;
      const bool has = position < call.rows && x < call.width;
#pragma unroll
      for (int n = 0; n < T::kColumns / 8; n += 4) {
        unsigned mine[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          mine[i] = attention::pack_pair(c[part][0][n + i][2 * half], c[part][0][n + i][2 * half + 1]);
        const uint4 eight = attention::gather_eight(mine);
        if (has && column + 8 * (n + t) < call.columns) *reinterpret_cast<uint4*>(to + 8 * n) = eight;
      }
    }
  }
}

// Whose tile it is, where warpgroups have tiles of their own. A barrier tells one filling of a stage from the next by
// parity alone, so nobody may wait for a filling while the one before it is still to come, and a warpgroup waits for
// none of the other's: it begins once all warps of the other have seen the last of the tile before. Each warpgroup has
// a barrier, whose phases are its tiles; one for both would have the same fault between warps of the same warpgroup.
struct Turns {
  unsigned barriers;
  int tile = 0;  // how many the block had before

  __device__ __forceinline__ unsigned of(int which) const { return barriers + 8 * (which % kGroups); }
  __device__ __forceinline__ void await() const {
    wait_for(of(tile + 1), static_cast<unsigned>((tile + 1) / kGroups + 1) & 1);  // phase (tile - 1) / 2
  }
  __device__ __forceinline__ void pass() const {
    if (attention::lane_of() == 0) arrive(of(tile));
  }
};

template <class T>
__device__ __forceinline__ void multiply_images(const ImageLaunch& call, Ring<T::kStages> ring, const Element* held,
                                                unsigned held_barrier, Turns turns) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, group = warp / 4;
  const unsigned weights = attention::descriptor(held), stages = weights + T::kHeldBytes / 16;
  const int first = T::kAlone ? 0 : group * T::kParts;  // part of the tile's rows
  if constexpr (T::kHeld) wait_for(held_barrier, 0);
  for (int tile = blockIdx.x; tile < call.tiles * call.classes; tile += gridDim.x, ++turns.tile) {
    const ImagePlace<T> place(call, tile);
    const int steps = place.steps(call);
    if (T::kAlone && turns.tile % kGroups != group) {
      ring.skip(steps);
      continue;
    }
    typename T::Sums c;
#pragma unroll
    for (int part = 0; part < T::kParts; ++part) {
      attention::clear(c[part]);
      attention::settle(c[part]);
    }
    if (T::kAlone) turns.await();
    if (T::kAlone && steps == 0) turns.pass();
    int before = -1;  // the stage whose products may still be running
    for (int step = 0; step < steps; ++step) {
      wait_for(ring.full(), ring.phase);
      if (T::kAlone && step + 1 == steps) turns.pass();
      attention::begin_products();
      const unsigned stage = stages + ring.stage * (T::kStageBytes / 16);
      issue_stage<T>(c, stage + first * attention::kNextTile,
                     T::kHeld ? weights + step * (T::kTaps * T::kWeightBytes / 16) : stage + T::kImageBytes / 16);
      attention::commit_products();
      attention::wait_for_products<1>();
      if (before >= 0 && attention::lane_of() == 0) arrive(ring.empty(before));
      before = ring.stage;
      ring.next();
    }
    attention::wait_for_products<0>();
#pragma unroll
    for (int part = 0; part < T::kParts; ++part) attention::settle(c[part]);
    if (before >= 0 && attention::lane_of() == 0) arrive(ring.empty(before));
    write_pixels<T>(call, c, place.window, place.row + first * 64 + warp % 4 * 16, place.column);
  }
}

template <class T>
__global__ void __launch_bounds__(T::kThreads, 1) im2col_image_kernel(const __grid_constant__ ImageLaunch call) {
#if __CUDA_ARCH__ >= 900  // on older cards it is never run: has_im2col() says so
  extern __shared__ unsigned char shared_bytes[];
  __shared__ std::uint64_t barriers[2 * T::kStages + 1 + kGroups];
  if (skipped(call.members, blockIdx.y)) return;
  Element* const held = attention::aligned_tiles(shared_bytes);
  const unsigned first = attention::shared_address(barriers), held_barrier = first + 16 * T::kStages,
                 turns = held_barrier + 8;
  if (threadIdx.x == 0) {
    make_ring<T::kStages>(first, (T::kAlone ? 1 : kGroups) * 4);
    make_barrier(held_barrier, 1);
    for (int group = 0; group < kGroups; ++group) make_barrier(turns + 8 * group, 4);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const Ring<T::kStages> ring{first};
  if (threadIdx.x >= kGroups * attention::kGroup) {
    if (attention::lane_of() == 0) bring_images<T>(call, ring, attention::shared_address(held), held_barrier);
  } else {
    multiply_images<T>(call, ring, held, held_barrier, {turns});
  }
#endif
}

}  // namespace norma::cuda::im2col
