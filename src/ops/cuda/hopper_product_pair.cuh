// A linear layer's activation made again for the backward pass, y = f(x W + b), and the gradient through it, dz =
// (dy V^T) f'(x W + b): two products of hopper_product.cuh for each tile, one after the other. What f is given stays in
// registers meanwhile, as bf16: both products in f32 would leave room for one tile on a multiprocessor, and there are
// two.
//
// Two tiles that began together would multiply together and then both wait for special functions. So the two are halves
// of one block where there are enough of them, and the second half multiplies when the first has done so once: from
// then on one multiplies while the other computes f or f'.
#pragma once

#include "ops/cuda/hopper_product_launch.cuh"

namespace norma::cuda::product {

struct Pair {
  Group<1> made, gradient;  // tiles of both are the same
  CUtensorMap y, dz;        // of kRowsOfWarp rows
  std::int64_t bias = kAbsent;
};

// What f' needs of two neighbouring numbers: what f was given, rounded as the forward pass rounded it, so that the bits
// are those of a layer that kept it.
template <class F>
__device__ __forceinline__ float2 slopes_at(unsigned z) {
  asm volatile("" : "+r"(z));  // or f' would be computed beside f, and held in twice the registers
  const float2 rounded = unpacked(z);
  return make_float2(F::slope(rounded.x), F::slope(rounded.y));
}

// Brings what the tiles of a block need, in order: steps of the first product, a place for what it makes, steps of the
// second and a place for that. By one of the consumers: a warp of its own would leave the others 96 registers.
class Supplier {
 public:
  __device__ __forceinline__ Supplier(const Pair& pair, const Ring<kStages<2>>& ring, int tile, int stride)
      : pair_(pair),
        ring_(ring),
        tile_(tile),
        stride_(stride),
        made_((pair.made.of[0].k + kDepth - 1) / kDepth),
        all_(made_ + (pair.gradient.of[0].k + kDepth - 1) / kDepth + 2) {
    skip();
  }
  __device__ __forceinline__ void bring_next() {
    if (tile_ >= tiles()) return;
    const Place place(pair_.made, tile_);
    if (step_ < made_) {
      ring_.template bring<true, false>(pair_.made.of[0], place, step_ * kDepth);
    } else if (step_ == made_ || step_ + 1 == all_) {
      ring_.lend();
    } else {
      ring_.template bring<true, true>(pair_.gradient.of[0], place, (step_ - made_ - 1) * kDepth);
    }
    if (++step_ < all_) return;
    step_ = 0;
    tile_ += stride_;
    skip();
  }

 private:
  __device__ __forceinline__ int tiles() const { return pair_.made.tiles * pair_.made.members.count; }
  __device__ __forceinline__ void skip() {
    while (tile_ < tiles() && skipped(pair_.made.members, Place(pair_.made, tile_).member)) tile_ += stride_;
  }
  const Pair& pair_;
  Ring<kStages<2>> ring_;  // where it is, ahead of the consumers
  int tile_;
  const int stride_, made_, all_;
  int step_ = 0;
};

// The turn to multiply, which the first half of a block hands to the second.
__device__ __forceinline__ void give_turn() { asm volatile("bar.arrive 1, %0;" ::"n"(2 * kConsumers) : "memory"); }
__device__ __forceinline__ void wait_for_turn() { asm volatile("bar.sync 1, %0;" ::"n"(2 * kConsumers) : "memory"); }

// A half, or a block that is one, has kConsumers threads along x, a ring and tiles of its own.
template <class F, int kHalves>
__global__ void __launch_bounds__(kConsumers* kHalves, 2 / kHalves) pair_kernel(const __grid_constant__ Pair pair) {
#if __CUDA_ARCH__ >= 900  // on older cards it is never run: has_hopper_products() says so
  extern __shared__ unsigned char shared_bytes[];
  __shared__ std::uint64_t barriers[kHalves][2 * kStages<2>];
  const int which = kHalves > 1 ? __shfl_sync(kAll, static_cast<int>(threadIdx.y), 0) : 0;
  const int begin = static_cast<int>(blockIdx.x) * kHalves + which, stride = static_cast<int>(gridDim.x) * kHalves;
  Ring<kStages<2>> ring(shared_bytes + which * kStages<2> * kStageBytes, barriers[which]);
  const Members& members = pair.made.members;
  Supplier supplier(pair, ring, begin, stride);
  // What has come back is filled again at once: everything before it is on its way, so that all warps come here.
  const auto refill = [&] {
    if (threadIdx.x == 0) supplier.bring_next();
    __syncwarp();
  };
  for (int place = 0; place < kStages<2>; ++place) refill();
  bool has_turn = kHalves > 1 && which == 0;  // and has not given it
  if (kHalves > 1 && which == 1) wait_for_turn();
  constexpr int kEights = kSide / 8;
  const auto nothing = [](const Element*) {};
  for (int tile = begin; tile < pair.made.tiles * members.count; tile += stride) {
    const Place place(pair.made, tile);
    if (skipped(members, place.member)) continue;
    const Element* const bias = at<const Element>(base_of(members, place.member), pair.bias);
    Sums c;
    multiply<true, false>(ring, c, pair.made.of[0].k, kNothingLent, nothing, refill);
    if (has_turn) give_turn();
    has_turn = false;
    ring.wait_until_full();
    const int lent = ring.stage;
    unsigned held[kEights][2];
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
      const float2 shift = shift_of(bias, place, n);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const unsigned z = attention::pack_pair(c[0][n][2 * half] + shift.x, c[0][n][2 * half + 1] + shift.y);
        const float2 rounded = unpacked(z);
        pair_of(ring.here(), n, half) = attention::pack_pair(F::value(rounded.x), F::value(rounded.y));
        held[n][half] = z;
      }
    }
    send_rows(pair.y, ring.here(), place);
    ring.next();
    multiply<true, true>(ring, c, pair.gradient.of[0].k, lent, nothing, refill);
    ring.wait_until_full();
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 slope = slopes_at<F>(held[n][half]);
        pair_of(ring.here(), n, half) =
            attention::pack_pair(c[0][n][2 * half] * slope.x, c[0][n][2 * half + 1] * slope.y);
      }
    }
    send_rows(pair.dz, ring.here(), place);
    if (attention::lane_of() == 0) {
      wait_until_sent();
      arrive(ring.empty + 8 * ring.stage);
    }
    ring.next();
    refill();
  }
  if (has_turn) give_turn();
#endif
}

template <class F, int kHalves>
int launch_pair_as(const Pair& pair, Stream stream) {
  constexpr auto kKernel = pair_kernel<F, kHalves>;
  constexpr int kShared = kHalves * kStages<2> * kStageBytes + 1024;  // tiles begin at a multiple of 1024
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  if (allowed != cudaSuccess) return allowed;
  const int tiles = pair.made.tiles * pair.made.members.count;
  const int blocks = std::min((tiles + kHalves - 1) / kHalves, 2 / kHalves * multiprocessors());
  kKernel<<<static_cast<unsigned>(blocks), dim3(kConsumers, kHalves), kShared, stream>>>(pair);
  return launched();
}

template <class F>
int launch_pair(const Pair& pair, Stream stream) {
  return has_few_tiles(pair.made) ? launch_pair_as<F, 1>(pair, stream) : launch_pair_as<F, 2>(pair, stream);
}

}  // namespace norma::cuda::product
