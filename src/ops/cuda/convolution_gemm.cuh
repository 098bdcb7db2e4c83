// The kernel of all three passes of a convolution, and its launch by tile.
#pragma once

#include <type_traits>

#include "ops/cuda/convolution_load.cuh"
#include "ops/cuda/convolution_math.cuh"

namespace norma::cuda::convolution {

// Everything about a block that is known at compile time.
template <class Math, ConvolutionPass kPass, ConvolutionTile kTile>
struct Block {
  using Element = typename Math::Element;
  static constexpr bool kForward = kPass == ConvolutionPass::forward, kWeights = kPass == ConvolutionPass::weights;
  static constexpr int kM = tile_rows(kTile), kN = tile_columns(kTile), kDepth = Math::kDepth;
  static constexpr int kWarpsN = kTile == ConvolutionTile::n128 ? 4 : kN == 64 ? 2 : 1;
  static constexpr int kWarpsM = kTile == ConvolutionTile::n128 ? 2 : 4;
  static constexpr int kThreads = kWarp * kWarpsM * kWarpsN;
  static constexpr int kWarpRows = kM / kWarpsM, kWarpColumns = kN / kWarpsN;
  static constexpr int kStages = 4;
  static constexpr int V = kTile == ConvolutionTile::single ? 1 : 16 / static_cast<int>(sizeof(Element));
  static constexpr bool kAlongA = !kWeights, kAlongB = kPass == ConvolutionPass::data;  // k along rows of the tile
  static constexpr int kStrideA = (kAlongA ? kDepth : kM) + padding_of<Element>(kAlongA);
  static constexpr int kStrideB = (kAlongB ? kDepth : kN) + padding_of<Element>(kAlongB);
  static constexpr int kElementsA = (kAlongA ? kM : kDepth) * kStrideA;
  static constexpr int kElementsB = (kAlongB ? kN : kDepth) * kStrideB;
  static constexpr int kStrideOut = kN + 8;
  static constexpr int kTileBytes = kStages * (kElementsA + kElementsB) * static_cast<int>(sizeof(Element));
  static constexpr int kOutBytes = kM * kStrideOut * static_cast<int>(sizeof(float));
  static constexpr int kSharedBytes = kTileBytes > kOutBytes ? kTileBytes : kOutBytes;
  static_assert(kElementsA * sizeof(Element) % 16 == 0 && kElementsB * sizeof(Element) % 16 == 0);

  using LoadA =
      std::conditional_t<kWeights, GatheredColumns<Element, kM, kDepth, V, kThreads, PaddedLayout<kStrideA>>,
                         GatheredRows<Element, kPass, true, false, kM, kDepth, V, kThreads, PaddedLayout<kStrideA>>>;
  using LoadB = std::conditional_t<kAlongB, PlainRows<Element, false, kN, kDepth, V, kThreads, PaddedLayout<kStrideB>>,
                                   PlainColumns<Element, false, kN, kDepth, V, kThreads, PaddedLayout<kStrideB>>>;
};

// One step along k.
template <class B, class Math, int kM, int kN>
__device__ __forceinline__ void multiply_tiles(float (&c)[kM][kN][4], const typename B::Element* a,
                                               const typename B::Element* b, int warp_m, int warp_n) {
  const int row = warp_m * B::kWarpRows, column = warp_n * B::kWarpColumns;
  a += B::kAlongA ? row * B::kStrideA : row;
  b += B::kAlongB ? column * B::kStrideB : column;
#pragma unroll
  for (int k = 0; k < Math::kDepth; k += Math::kStep) {
    unsigned mine[kM][4], other[kN][2];
    Math::template load_a<B::kAlongA>(mine, a, B::kStrideA, k);
    Math::template load_b<B::kAlongB>(other, b, B::kStrideB, k);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kN; ++n) Math::multiply(c[m][n], mine[m], other[n]);
    }
  }
}

// Where row `row` of the product lies in the result.
template <class B>
__device__ __forceinline__ std::int64_t result_row(const ConvolutionCall& call, const BlockPlace& place, int row) {
  if (!B::kAlongB || call.classes == 1) return row;
  const RowPixel pixel(call, row);
  const std::int64_t line = (std::int64_t{pixel.image} * call.rows_height + pixel.y) * call.stride + place.class_row;
  return (line * call.rows_width + pixel.x) * call.stride + place.class_column;
}

// Accumulators through shared memory to rows of the result.
template <class B, class Out, int V>
__device__ __forceinline__ void write_rows(const ConvolutionCall& call, const float* shared, Out* out,
                                           const BlockPlace& place) {
  constexpr int kAcross = B::kN / V;
  for (int i = static_cast<int>(threadIdx.x); i < B::kM * kAcross; i += B::kThreads) {
    const int row = i / kAcross, column = i % kAcross * V;
    if (place.first_row + row >= call.m || place.first_column + column >= call.n) continue;
    float values[V];
#pragma unroll
    for (int j = 0; j < V; ++j) values[j] = shared[row * B::kStrideOut + column + j];
    const std::int64_t line = result_row<B>(call, place, place.first_row + row);
    store<Out, V>(out + line * call.out_row + place.first_column + column, values);
  }
}

template <class B>
__device__ __forceinline__ typename B::LoadA make_load_a(const ConvolutionCall& call, std::byte* member,
                                                         const BlockPlace& place) {
  const auto* const image = at<const typename B::Element>(member, call.a) + place.group * call.depth;
  return typename B::LoadA(call, place, image);
}

// Columns of the other factor that belong to the group: those of the result, or of what is summed over.
template <class B>
__device__ __forceinline__ typename B::LoadB make_load_b(const ConvolutionCall& call, std::byte* member,
                                                         const BlockPlace& place) {
  const auto* const other =
      at<const typename B::Element>(member, call.b) + place.group * (B::kAlongB ? call.depth : call.n);
  return typename B::LoadB(call, place, other);
}

template <class B>
__device__ __forceinline__ void write_result(const ConvolutionCall& call, std::byte* member, const float* shared,
                                             const BlockPlace& place) {
  const std::int64_t first = place.split * call.split_elements + std::int64_t{place.group} * call.n;
  if (call.narrow_out) {
    auto* const out = at<__nv_bfloat16>(member, call.out) + first;
    if (call.wide_out) {
      write_rows<B, __nv_bfloat16, 8>(call, shared, out, place);
    } else {
      write_rows<B, __nv_bfloat16, 1>(call, shared, out, place);
    }
  } else {
    float* const out = at<float>(member, call.out) + first;
    if (call.wide_out) {
      write_rows<B, float, 4>(call, shared, out, place);
    } else {
      write_rows<B, float, 1>(call, shared, out, place);
    }
  }
}

template <class Math, ConvolutionPass kPass, ConvolutionTile kTile>
__global__ void __launch_bounds__(Block<Math, kPass, kTile>::kThreads, 2)
    convolution_kernel(const __grid_constant__ ConvolutionCall call, const int tiles_n) {
  using B = Block<Math, kPass, kTile>;
  using Element = typename B::Element;
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  if (skipped(call.members, blockIdx.z)) return;
  std::byte* const member = base_of(call.members, blockIdx.z);
  const BlockPlace place(call, tiles_n, B::kM, B::kN);
  Element* const tiles_a = reinterpret_cast<Element*>(shared_bytes);
  Element* const tiles_b = tiles_a + B::kStages * B::kElementsA;
  auto load_a = make_load_a<B>(call, member, place);
  auto load_b = make_load_b<B>(call, member, place);
  const int steps = (place.k_end - place.k_begin + B::kDepth - 1) / B::kDepth;
  const auto bring = [&](int step) {
    if (step < steps) {
      load_a.load(call, place, tiles_a + step % B::kStages * B::kElementsA);
      load_b.load(call, place, tiles_b + step % B::kStages * B::kElementsB);
    }
    commit_copies();
  };
  constexpr int kMine = B::kWarpRows / 16, kOther = B::kWarpColumns / 8;
  float c[kMine][kOther][4];
  attention::clear(c);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, warp_m = warp / B::kWarpsN, warp_n = warp % B::kWarpsN;
  for (int step = 0; step < B::kStages - 1; ++step) bring(step);
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<B::kStages - 2>();
    __syncthreads();  // the step's tiles are there, and nobody reads those of the step before
    bring(step + B::kStages - 1);
    multiply_tiles<B, Math>(c, tiles_a + step % B::kStages * B::kElementsA, tiles_b + step % B::kStages * B::kElementsB,
                            warp_m, warp_n);
  }
  wait_for_copies<0>();
  __syncthreads();

  float* const shared = reinterpret_cast<float*>(shared_bytes);
  const int lane = attention::lane_of(), g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int m = 0; m < kMine; ++m) {
#pragma unroll
    for (int n = 0; n < kOther; ++n) {
      const int row = warp_m * B::kWarpRows + 16 * m + g, column = warp_n * B::kWarpColumns + 8 * n + 2 * t;
      *reinterpret_cast<float2*>(shared + row * B::kStrideOut + column) = make_float2(c[m][n][0], c[m][n][1]);
      *reinterpret_cast<float2*>(shared + (row + 8) * B::kStrideOut + column) = make_float2(c[m][n][2], c[m][n][3]);
    }
  }
  __syncthreads();
  write_result<B>(call, member, shared, place);
}

template <class B>
int launch_blocks(void (*kernel)(ConvolutionCall, int), const ConvolutionCall& call, Stream stream) {
  if (B::kSharedBytes > 48 * 1024) {
    const int error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, B::kSharedBytes);
    if (error != 0) return error;
  }
  const std::int64_t tiles_n = divide_up(call.n, B::kN), tiles_m = divide_up(call.m, B::kM);
  const dim3 grid(static_cast<unsigned>(tiles_m * tiles_n),
                  static_cast<unsigned>(call.splits * call.classes * call.groups),
                  static_cast<unsigned>(call.members.count));
  kernel<<<grid, B::kThreads, B::kSharedBytes, stream>>>(call, static_cast<int>(tiles_n));
  return launched();
}

template <class Math, ConvolutionPass kPass, ConvolutionTile kTile>
int launch_tile(const ConvolutionCall& call, Stream stream) {
  return launch_blocks<Block<Math, kPass, kTile>>(convolution_kernel<Math, kPass, kTile>, call, stream);
}

// Elements of 32 bits have the tiles of 32 and 64 columns alone.
template <class Math, ConvolutionPass kPass>
int launch_pass(ConvolutionTile tile, const ConvolutionCall& call, Stream stream) {
  using enum ConvolutionTile;
  if (tile == single) return launch_tile<Math, kPass, single>(call, stream);
  if constexpr (sizeof(typename Math::Element) == 2) {
    if (tile == n16) return launch_tile<Math, kPass, n16>(call, stream);
    if (tile == n128) return launch_tile<Math, kPass, n128>(call, stream);
  }
  return tile == n16 || tile == n32 ? launch_tile<Math, kPass, n32>(call, stream)
                                    : launch_tile<Math, kPass, n64>(call, stream);
}

template <class Math>
int launch_convolution(const ConvolutionLaunch& launch, const ConvolutionCall& call, Stream stream) {
  using enum ConvolutionPass;
  switch (launch.pass) {
    case forward: return launch_pass<Math, forward>(launch.tile, call, stream);
    case data: return launch_pass<Math, data>(launch.tile, call, stream);
    case weights: return launch_pass<Math, weights>(launch.tile, call, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace norma::cuda::convolution
