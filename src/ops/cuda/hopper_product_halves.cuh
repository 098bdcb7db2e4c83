// The kernel of hopper_product.cuh where every tile is one of the two that a multiprocessor can have: blocks of two
// halves, of which one multiplies while the other ends.
#pragma once

#include <cstdlib>
#include <string_view>

#include "ops/cuda/hopper_product_launch.cuh"

namespace norma::cuda::product {

template <bool kAlongA, bool kAlongB, class End>
__global__ void __launch_bounds__(2 * kConsumers, 1)
    halves_kernel(const __grid_constant__ Group<1> group, const __grid_constant__ End end) {
#if __CUDA_ARCH__ >= 900  // on older cards it is never run: has_hopper_products() says so
  static_assert(End::kSlots == 1 && !End::kSums);
  extern __shared__ unsigned char shared_bytes[];
  __shared__ std::uint64_t barriers[2][2 * kStages<2>];
  const int which = half_of_block(), tile = 2 * static_cast<int>(blockIdx.x) + which;
  Ring<kStages<2>> ring(shared_bytes + which * kStages<2> * kStageBytes, barriers[which]);
  const Place place(group, tile);
  const One& one = group.of[0];
  if (tile >= group.tiles * group.members.count || skipped(group.members, place.member)) {
    if (which == 0) give_turn();
    if (which == 1) wait_for_turn();
    return;
  }
  Ring<kStages<2>> ahead = ring;  // of the one thread that brings
  const int steps = (one.k + kDepth - 1) / kDepth;
  int step = 0;
  const auto refill = [&] {  // behind the last step comes the place for the end
    if (threadIdx.x == 0 && step <= steps) {
      if (step < steps) {
        ahead.template bring<kAlongA, kAlongB>(one, place, step * kDepth);
      } else {
        bring_slot(ahead, end, place);
      }
      ++step;
    }
    __syncwarp();
  };
  for (int at = 0; at < kStages<2>; ++at) refill();
  if (which == 1) wait_for_turn();
  Sums c;
  multiply<kAlongA, kAlongB>(
      ring, c, one.k, kNothingLent, [](const Element*) {}, refill);
  if (which == 0) give_turn();
  ring.wait_until_full();
  Element* const slots[1] = {ring.here()};
  end(c, place, base_of(group.members, place.member), slots);
  if (attention::lane_of() == 0) wait_until_sent();
#endif
}

// Whether there are tiles for one block of a multiprocessor and more, and not too many for two.
inline bool halves_pay(const Group<1>& group) {
  static const char* const trial = std::getenv("NORMA_TRIAL_HALVES");  // trial: "old" is two blocks
  static const bool old = trial != nullptr && std::string_view(trial) == "old";
  const int tiles = group.tiles * group.members.count;
  return !old && tiles > multiprocessors() && tiles <= 2 * multiprocessors();
}

template <bool kAlongA, bool kAlongB, class End>
int launch_halves(const Group<1>& group, const End& end, Stream stream) {
  constexpr auto kKernel = halves_kernel<kAlongA, kAlongB, End>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytesOfHalves);
  if (allowed != cudaSuccess) return allowed;
  const int blocks = (group.tiles * group.members.count + 1) / 2;
  kKernel<<<static_cast<unsigned>(blocks), dim3(kConsumers, 2), kSharedBytesOfHalves, stream>>>(group, end);
  return launched();
}

}  // namespace norma::cuda::product
