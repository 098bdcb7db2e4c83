// Matrix products of bf16 with wgmma, for what the library has no good answer to: an activation or its derivative on
// the way out, and many small products in one launch. Tiles of 128 x 128, steps of 64 along k: one warp brings them
// with the copy engine, two warpgroups of 64 rows each multiply, and as two blocks share a multiprocessor, one writes
// its result while the other multiplies. Blocks walk over tiles, of all products and members. What becomes of the sums
// is the matter of an End (hopper_product_ends.cuh), which may ask for further places of the ring: to have a tile
// brought, or to put its results together for the copy engine to write.
#pragma once

#include "ops/cuda/hopper_product_ring.cuh"

namespace norma::cuda::product {

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
