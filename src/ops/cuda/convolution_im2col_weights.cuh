// By the weights: rows of the result are units, 64 channels of one tap, and the sum is over positions: pixels of the
// gradient. Three warpgroups have kUnits each; a block has one tile of the result and one part of the sum.
#pragma once

#include "ops/cuda/convolution_im2col.cuh"

namespace norma::cuda::im2col {

constexpr int kWeightGroups = 3;

struct WeightsLaunch {
  CUtensorMap image, gradient;
  Members members = {};
  std::int64_t out = kAbsent, elements = 0;  // of a part of the sum
  std::int32_t in = 0, columns = 0, kernel = 1;
  std::int32_t height = 1, line = 1, stride = 1, padding = 0;  // as for ImageLaunch
  std::int32_t units = 1, steps = 1, steps_per_split = 1;
  std::int32_t across = 1, tiles = 1;
};

// kRow: the units of a warpgroup are the three taps of a row and read one box; the gradient comes by lines of as many
// positions, zeros beyond the last pixel.
template <int kUnits_, int kColumns_, bool kRow_>
struct WeightsTile {
  static constexpr bool kRow = kRow_;
  static constexpr int kUnits = kUnits_, kColumns = kColumns_;
  static_assert(!kRow || kUnits == 3);
  static constexpr int kThreads = (kWeightGroups + 1) * attention::kGroup;
  static constexpr int kBoxes = kWeightGroups * (kRow ? 1 : kUnits);
  static constexpr int kBoxRows = kDepth + (kRow ? kMoreRows : 0);
  static constexpr int kBoxBytes = (kDepth + (kRow ? kLeftOut : 0)) * kRowBytes;  // in shared memory
  static constexpr int kImageBytes = kBoxes * kBoxBytes, kGradientBytes = kColumns * kDepth * 2;
  static constexpr int kStageBytes = kImageBytes + kGradientBytes;
  static constexpr int kStages = stages_for(kStageBytes, 0);
  static constexpr int kSharedBytes = kStages * kStageBytes + 1024;
  using Sums = float[kUnits][1][kColumns / 8][4];
};

// Which units, columns and steps a block has.
template <class T>
struct WeightsPlace {
  int unit, column, split, begin, end;
  __device__ __forceinline__ explicit WeightsPlace(const WeightsLaunch& call) {
    split = static_cast<int>(blockIdx.x) / call.tiles;
    const int tile = static_cast<int>(blockIdx.x) - split * call.tiles;
    unit = tile / call.across * kWeightGroups * T::kUnits;
    column = tile % call.across * T::kColumns;
    begin = split * call.steps_per_split;
    end = min(begin + call.steps_per_split, call.steps);
  }
};

template <class T>
__device__ __forceinline__ void bring_parts(const WeightsLaunch& call, Ring<T::kStages> ring, unsigned stages) {
  const WeightsPlace<T> place(call);
  const int taps = call.kernel * call.kernel, member = static_cast<int>(blockIdx.y);
  const int left = T::kRow ? (call.units - place.unit) / 3 : call.units - place.unit, boxes = min(left, T::kBoxes);
  const auto arriving = static_cast<unsigned>(boxes * T::kBoxRows * kRowBytes + T::kGradientBytes);
  for (int step = place.begin; step < place.end; ++step) {
    ring.open(arriving);
    const unsigned to = stages + ring.stage * T::kStageBytes;
    const Corner corner = corner_of(step * kDepth, call.line, call.height, call.stride, call.padding);
    for (int box = 0; box < boxes; ++box) {
      const int unit = place.unit + box * (T::kRow ? 3 : 1), block = unit / taps, tap = unit - block * taps;
      bring_pixels(to + box * T::kBoxBytes, call.image, block * kChannels, corner, member, tap % call.kernel,
                   tap / call.kernel, ring.full());
    }
#pragma unroll
    for (int part = 0; part < T::kColumns / 64; ++part) {
      const unsigned at = to + T::kImageBytes + part * attention::kTileBytes;
      if constexpr (T::kRow) {
        const Corner same{corner.x + call.padding, corner.y + call.padding, corner.image};  // the stride is 1
        bring_pixels(at, call.gradient, place.column + 64 * part, same, member, 0, 0, ring.full());
      } else {
        product::bring_box(at, call.gradient, place.column + 64 * part, step * kDepth, member, ring.full());
      }
    }
    ring.next();
  }
}

// Sums of a warp: 16 channels of each unit.
template <class T>
__device__ __forceinline__ void write_units(const WeightsLaunch& call, const typename T::Sums& c,
                                            const WeightsPlace<T>& place, int first_unit, int row) {
  const int g = attention::MatrixLanes::g(), t = attention::MatrixLanes::t(), taps = call.kernel * call.kernel;
  float* const out = at<float>(base_of(call.members, blockIdx.y), call.out) + place.split * call.elements;
#pragma unroll
  for (int u = 0; u < T::kUnits; ++u) {
    const int unit = first_unit + u, block = unit / taps, tap = unit - block * taps;
    if (unit >= call.units) break;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int channel = block * kChannels + row + 8 * half + g;
      float* const to = out + (std::int64_t{tap} * call.in + channel) * call.columns + place.column + 2 * t;
#pragma unroll
      for (int n = 0; n < T::kColumns / 8; ++n) {
        if (channel < call.in && place.column + 8 * n + 2 * t < call.columns)
          *reinterpret_cast<float2*>(to + 8 * n) = make_float2(c[u][0][n][2 * half], c[u][0][n][2 * half + 1]);
      }
    }
  }
}

template <class T>
__device__ __forceinline__ void multiply_parts(const WeightsLaunch& call, Ring<T::kStages> ring, const Element* tiles) {
  const WeightsPlace<T> place(call);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, group = warp / 4;
  constexpr unsigned kNextUnit = T::kRow ? kNextRow : T::kBoxBytes / 16;
  const unsigned mine = group * (T::kRow ? 1 : T::kUnits) * (T::kBoxBytes / 16);
  typename T::Sums c;
#pragma unroll
  for (int u = 0; u < T::kUnits; ++u) {
    attention::clear(c[u]);
    attention::settle(c[u]);
  }
  int before = -1;  // the stage whose products may still be running
  for (int step = place.begin; step < place.end; ++step) {
    wait_for(ring.full(), ring.phase);
    attention::begin_products();
    const unsigned stage = attention::descriptor(tiles) + ring.stage * (T::kStageBytes / 16);
    const unsigned gradient = convolution::in_parts(stage + T::kImageBytes / 16);
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
#pragma unroll
      for (int u = 0; u < T::kUnits; ++u)
        convolution::issue_product<false, false>(c[u], stage + mine + u * kNextUnit + k * attention::kDepthByColumns,
                                                 gradient + k * attention::kDepthByColumns);
    }
    attention::commit_products();
    attention::wait_for_products<1>();
    if (before >= 0 && attention::lane_of() == 0) arrive(ring.empty(before));
    before = ring.stage;
    ring.next();
  }
  attention::wait_for_products<0>();
#pragma unroll
  for (int u = 0; u < T::kUnits; ++u) attention::settle(c[u]);
  write_units<T>(call, c, place, place.unit + group * T::kUnits, warp % 4 * 16);
}

// Registers of each thread of a warpgroup from here on: fewer, more.
template <int kCount>
__device__ __forceinline__ void keep_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}
template <int kCount>
__device__ __forceinline__ void take_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}

template <class T>
__global__ void __launch_bounds__(T::kThreads, 1) im2col_weights_kernel(const __grid_constant__ WeightsLaunch call) {
#if __CUDA_ARCH__ >= 900  // on older cards it is never run: has_im2col() says so
  extern __shared__ unsigned char shared_bytes[];
  __shared__ std::uint64_t barriers[2 * T::kStages];
  if (skipped(call.members, blockIdx.y)) return;
  Element* const tiles = attention::aligned_tiles(shared_bytes);
  const unsigned first = attention::shared_address(barriers);
  if (threadIdx.x == 0) {
    make_ring<T::kStages>(first, kWeightGroups * 4);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const Ring<T::kStages> ring{first};
  // The fourth warpgroup, of which one thread works, leaves its registers to the others.
  if (threadIdx.x >= kWeightGroups * attention::kGroup) {
    keep_registers<32>();
    if (threadIdx.x == kWeightGroups * attention::kGroup) bring_parts<T>(call, ring, attention::shared_address(tiles));
  } else {
    take_registers<160>();
    multiply_parts<T>(call, ring, tiles);
  }
#endif
}

}  // namespace norma::cuda::im2col
