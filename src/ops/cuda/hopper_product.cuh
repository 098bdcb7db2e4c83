// Matrix products of bf16 with wgmma, for what the library has no good answer to: an activation or its derivative on
// the way out, and many small products in one launch. Tiles of 128 x 128, steps of 64 along k: one warp brings them
// with the copy engine, two warpgroups of 64 rows each multiply, and as two blocks share a multiprocessor, one writes
// its result while the other multiplies. Blocks walk over tiles, of all products and members. What becomes of the sums
// is the matter of an End (hopper_product_ends.cuh), which may ask for further places of the ring: to have a tile
// brought, or to put its results together for the copy engine to write.
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

// The sums over k of a second factor that lies [k, n], from the tiles that the products read, by all consumers: each
// has two columns of every fourth sixteen rows.
class ColumnTotals {
 public:
  __device__ __forceinline__ void add(const Element* tile) {
    const int thread = static_cast<int>(threadIdx.x), pair = thread % 64;
    const char* const rows =
        reinterpret_cast<const char*>(tile) + pair / 32 * attention::kTileBytes + thread / 64 * 16 * 128 + pair % 4 * 4;
    const int chunk = pair % 32 / 4;
#pragma unroll
    for (int row = 0; row < 16; ++row) {
      const unsigned both = *reinterpret_cast<const unsigned*>(rows + row * 128 + ((chunk ^ (row & 7)) << 4));
      low_ += __uint_as_float(both << 16);
      high_ += __uint_as_float(both & 0xffff0000u);
    }
  }
  // `gathered` may be used again afterwards.
  __device__ __forceinline__ void write(float (&gathered)[4][kSide], float* sums, int column, int columns) {
    const int thread = static_cast<int>(threadIdx.x);
    gathered[thread / 64][2 * (thread % 64)] = low_;
    gathered[thread / 64][2 * (thread % 64) + 1] = high_;
    meet();
    if (thread < kSide && column + thread < columns) {
      sums[column + thread] = (gathered[0][thread] + gathered[1][thread]) + (gathered[2][thread] + gathered[3][thread]);
    }
    meet();
  }

 private:
  __device__ __forceinline__ static void meet() { asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory"); }
  float low_ = 0.0f, high_ = 0.0f;
};

// c = the product of a tile, by the consumers. `lent` is a place whose content this warp has sent and not given back,
// or kNothingLent: it goes back when the first products are under way. `beside` sees every part of the second factor.
constexpr int kNothingLent = -1;
template <bool kAlongA, bool kAlongB, int kPlaces, class Beside, class Returned>
__device__ __forceinline__ void multiply(Ring<kPlaces>& ring, Sums& c, int deep, int lent, const Beside& beside,
                                         const Returned& returned) {
  constexpr unsigned kStepA = kAlongA ? attention::kDepthByRows : attention::kDepthByColumns;
  constexpr unsigned kStepB = kAlongB ? attention::kDepthByRows : attention::kDepthByColumns;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  attention::clear(c);
  attention::settle(c);
  int before = kNothingLent;  // the stage whose products may still be running
  for (int depth = 0; depth < deep; depth += kDepth) {
    ring.wait_until_full();
    attention::begin_products();
    const Element* const first = ring.here();
    const unsigned a = attention::descriptor(first) + warp / 4 * attention::kNextTile;
    unsigned b = attention::descriptor(first + kElements);
    if (!kAlongB) b = convolution::in_parts(b);
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      convolution::issue_product<kAlongA, kAlongB>(c, a + k * kStepA, b + k * kStepB);
    }
    attention::commit_products();
    beside(first + kElements);
    attention::wait_for_products<1>();
    if (lent >= 0 && depth == 0) {
      if (attention::lane_of() == 0) {
        wait_until_sent();
        arrive(ring.empty + 8 * lent);
      }
      returned();
    }
    if (before >= 0) {
      if (attention::lane_of() == 0) arrive(ring.empty + 8 * before);
      returned();
    }
    before = ring.stage;
    ring.next();
  }
  attention::wait_for_products<0>();
  attention::settle(c);
  if (attention::lane_of() == 0) arrive(ring.empty + 8 * before);
  returned();
}

template <bool kAlongA, bool kAlongB, class End, int kMost, int kResident>
__global__ void __launch_bounds__(kThreadsOfProduct, kResident)
    product_kernel(const __grid_constant__ Group<kMost> group, const __grid_constant__ End end) {
#if __CUDA_ARCH__ >= 900  // on older cards it is never run: has_hopper_products() says so
  extern __shared__ unsigned char shared_bytes[];
  __shared__ std::uint64_t barriers[2 * kStages<kResident>];
  __shared__ float gathered[End::kSums ? 4 : 1][kSide];
  Ring<kStages<kResident>> ring(shared_bytes, barriers);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, all = group.tiles * group.members.count;
  if (warp == kConsumers / kWarp) {
    if (attention::lane_of() != 0) return;
    for (int tile = blockIdx.x; tile < all; tile += gridDim.x) {
      const Place place(group, tile);
      if (skipped(group.members, place.member)) continue;
      for (int depth = 0; depth < place.one->k; depth += kDepth)
        ring.template bring<kAlongA, kAlongB>(*place.one, place, depth);
      for (int slot = 0; slot < End::kSlots; ++slot) {
        if constexpr (End::kBrings) {
          ring.wait_until_empty();
          const unsigned barrier = ring.full + 8 * ring.stage;
          arrive_expecting(barrier, kStageBytes);
          end.bring(attention::shared_address(ring.tiles) + ring.stage * kStageBytes, place, barrier);
          ring.next();
        } else {
          ring.lend();
        }
      }
    }
    return;
  }
  for (int tile = blockIdx.x; tile < all; tile += gridDim.x) {
    const Place place(group, tile);
    if (skipped(group.members, place.member)) continue;
    Sums c;
    ColumnTotals totals;
    const bool sums = End::kSums && place.row == 0 && place.one->sums >= 0;
    const auto beside = [&](const Element* second) {
      if constexpr (End::kSums) {
        if (sums) totals.add(second);
      }
    };
    multiply<kAlongA, kAlongB>(ring, c, place.one->k, kNothingLent, beside, [] {});
    if constexpr (End::kSums) {
      if (sums) {
        totals.write(gathered, at<float>(base_of(group.members, place.member), place.one->sums), place.column,
                     place.one->n);
      }
    }
    if constexpr (End::kSlots == 0) {
      end(c, *place.one, base_of(group.members, place.member), place.row + warp * 16, place.column);
    } else {
      int stages[End::kSlots];
      Element* slots[End::kSlots];
#pragma unroll
      for (int slot = 0; slot < End::kSlots; ++slot) {
        ring.wait_until_full();
        stages[slot] = ring.stage;
        slots[slot] = ring.here();
        ring.next();
      }
      end(c, place, base_of(group.members, place.member), slots);
      if (attention::lane_of() == 0) {
        wait_until_sent();
#pragma unroll
        for (int slot = 0; slot < End::kSlots; ++slot) arrive(ring.empty + 8 * stages[slot]);
      }
    }
  }
#endif
}

}  // namespace norma::cuda::product
