// What hopper_product.cuh is made of: products and where a block is among their tiles, the copy engine, and the ring of
// places in shared memory that tiles pass through.
#pragma once

#include <cuda.h>

#include "ops/cuda/convolution_hopper.cuh"

namespace norma::cuda::product {

using Element = __nv_bfloat16;
constexpr int kSide = 128, kDepth = 64;  // of a tile; of a step
constexpr int kConsumers = 2 * attention::kGroup, kThreadsOfProduct = kConsumers + kWarp;
constexpr int kElements = kSide * kDepth, kStageBytes = 2 * kElements * 2;
// Blocks that a multiprocessor shares, and how many steps each has on their way.
template <int kResident>
constexpr int kStages = kResident == 1 ? 4 : 3;
template <int kResident>
constexpr int kSharedBytes = kStages<kResident> * kStageBytes + 1024;  // tiles begin at a multiple of 1024
using Sums = float[1][kSide / 8][4];

// One of the products of a launch: C[m, n] over k. Maps are of all members.
struct One {
  CUtensorMap a, b;
  std::int64_t out = kAbsent;
  std::int64_t sums = kAbsent;  // f32 [n]: of the second factor over k, where End::kSums
  std::int32_t m = 0, n = 0, k = 0;
  std::int32_t first = 0, across = 1;  // its first tile among those of a member; tiles of a row of tiles
};

template <int kMost>
struct Group {
  Members members = {};
  bool from_the_end = false;          // the walk begins with the last member
  std::int32_t count = 0, tiles = 0;  // products; tiles of a member
  One of[kMost];
};

// Barriers in shared memory, by address.
__device__ __forceinline__ void make_barrier(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void arrive_expecting(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait_for(unsigned barrier, unsigned phase) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra.uni over;\n"
      "bra.uni again;\nover:\n}\n" ::"r"(barrier),
      "r"(phase)
      : "memory");
}

// A box of a tensor [member, row, column] into shared memory, zeros where there is nothing.
__device__ __forceinline__ void bring_box(unsigned to, const CUtensorMap& map, int column, int row, int member,
                                          unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
          "r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(member), "r"(barrier)
      : "memory");
}

// A tile of a factor at `outer` along rows (or columns) of the result and `depth` along k.
template <bool kAlong>
__device__ __forceinline__ void bring_tile(unsigned to, const CUtensorMap& map, int outer, int depth, int member,
                                           unsigned barrier) {
  if constexpr (kAlong) {
    bring_box(to, map, depth, outer, member, barrier);
  } else {
    bring_box(to, map, outer, depth, member, barrier);
    bring_box(to + attention::kTileBytes, map, outer + 64, depth, member, barrier);
  }
}

// A part of a tile from shared memory into a tensor, without what lies outside of it. What the threads of a warp wrote
// there must have been published, by each of them.
__device__ __forceinline__ void send_box(const CUtensorMap& map, int column, int row, int member, unsigned from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
               "r"(column), "r"(row), "r"(member), "r"(from)
               : "memory");
}
__device__ __forceinline__ void commit_boxes() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Shared memory that this thread has sent may be used again.
__device__ __forceinline__ void wait_until_sent() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// Where a block is in its walk.
struct Place {
  const One* one;
  int member, row, column;  // of the tile's first element
  template <int kMost>
  __device__ __forceinline__ Place(const Group<kMost>& group, int tile) {
    member = tile / group.tiles;
    tile -= member * group.tiles;
    if (group.from_the_end) member = group.members.count - 1 - member;
    int index = 0;
    if constexpr (kMost > 1) {
      while (index + 1 < group.count && tile >= group.of[index + 1].first) ++index;
    }
    one = &group.of[index];
    tile -= one->first;
    row = tile / one->across * kSide;
    column = tile % one->across * kSide;
  }
};

// The ring of places in shared memory that the tiles of a block pass through, as one of its threads sees it.
template <int kPlaces>
struct Ring {
  Element* tiles;
  unsigned full, empty;  // barriers of the first place
  int stage = 0;
  unsigned phase = 0;

  // Made by thread 0 of a block; the others wait for it.
  __device__ __forceinline__ Ring(unsigned char* shared_bytes, std::uint64_t (&barriers)[2 * kPlaces])
      : tiles(attention::aligned_tiles(shared_bytes)),
        full(attention::shared_address(barriers)),
        empty(full + 8 * kPlaces) {
    if (threadIdx.x == 0) {
      for (int place = 0; place < kPlaces; ++place) {
        make_barrier(full + 8 * place, 1);
        make_barrier(empty + 8 * place, kConsumers / kWarp);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
  }
  __device__ __forceinline__ void next() {
    if (++stage == kPlaces) stage = 0, phase ^= 1;
  }
  __device__ __forceinline__ Element* here() const { return tiles + stage * 2 * kElements; }
  __device__ __forceinline__ void wait_until_full() const { wait_for(full + 8 * stage, phase); }
  __device__ __forceinline__ void wait_until_empty() const { wait_for(empty + 8 * stage, phase ^ 1); }

  // A step of a tile, by the thread that brings.
  template <bool kAlongA, bool kAlongB>
  __device__ __forceinline__ void bring(const One& one, const Place& place, int depth) {
    wait_until_empty();
    arrive_expecting(full + 8 * stage, kStageBytes);
    const unsigned to = attention::shared_address(tiles) + stage * kStageBytes;
    bring_tile<kAlongA>(to, one.a, place.row, depth, place.member, full + 8 * stage);
    bring_tile<kAlongB>(to + kElements * 2, one.b, place.column, depth, place.member, full + 8 * stage);
    next();
  }
  // A place for a tile's results.
  __device__ __forceinline__ void lend() {
    wait_until_empty();
    arrive(full + 8 * stage);
    next();
  }
};

}  // namespace norma::cuda::product
