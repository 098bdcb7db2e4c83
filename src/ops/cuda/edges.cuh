// Where the rows of one number begin in a sorted list, such as the edges of a node.
#pragma once

#include "device/cuda/device.cuh"

namespace norma::cuda {

// The first place whose number is at least `number`, or `count`; kLanes neighbouring lanes of a warp together, as many
// places a round. All lanes of the warp take part.
template <int kLanes = kWarp>
__device__ __forceinline__ int first_of(const std::int32_t* sorted, std::int64_t count, std::int64_t number) {
  const int thread = thread_index() % kWarp, lane = thread % kLanes;
  const unsigned own = (kLanes == kWarp ? kAll : (1u << kLanes % kWarp) - 1) << (thread - lane);
  const auto below = static_cast<std::int32_t>(number);
  int low = 0, high = static_cast<int>(count);  // the answer is in [low, high]
  while (__any_sync(kAll, high > low)) {
    const int step = (high - low + kLanes - 1) / kLanes, place = low + lane * step;
    const bool before = place < high && sorted[place] < below;
    const int passed = __popc(__ballot_sync(kAll, before) & own);  // lanes, from the first on
    if (high <= low) continue;
    if (passed == 0) {
      high = low;
    } else {
      high = min(high, low + passed * step);
      low += (passed - 1) * step + 1;
    }
  }
  return low;
}

// y and pick take what is larger, or NaN, or the first of all; as keep_larger of the CPU.
__device__ __forceinline__ void keep_larger(float value, std::int32_t number, bool first, float& y,
                                            std::int32_t& pick) {
  if (first || value > y || isnan(value)) {
    y = value;
    pick = number;
  }
}

}  // namespace norma::cuda
