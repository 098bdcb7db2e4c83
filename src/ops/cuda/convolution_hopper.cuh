// The kernel of convolution_gemm.cuh with wgmma: two warpgroups of 64 rows each share tiles of kN columns, and steps
// along k are 64 long. Tiles are swizzled as in attention_wgmma.cuh.
#pragma once

#include <type_traits>

#include "ops/cuda/attention_wgmma.cuh"
#include "ops/cuda/convolution_gemm.cuh"
#include "ops/cuda/convolution_hopper.h"

namespace norma::cuda::convolution {

template <ConvolutionPass kPass, int kColumns>
struct HopperBlock {
  using Element = __nv_bfloat16;
  static constexpr bool kWeights = kPass == ConvolutionPass::weights;
  static constexpr bool kAlongA = !kWeights, kAlongB = kPass == ConvolutionPass::data;  // k along rows of the tile
  static constexpr int kM = 128, kN = kColumns, kDepth = kHopperDepth, kThreads = 2 * attention::kGroup;
  using Sums = float[1][kN / 8][4];
  static constexpr int kStages = kN == 64 ? 4 : 3;
  static constexpr int kElementsA = kM * kDepth, kElementsB = kN * kDepth;
  static constexpr int kStrideOut = kN + 8;
  static constexpr int kTileBytes = kStages * (kElementsA + kElementsB) * 2;
  static constexpr int kSharedBytes = kTileBytes + 1024;  // begins at a multiple of 1024
  static_assert(kM * kStrideOut * 4 <= kTileBytes);

  using LayoutA = SwizzledLayout<kAlongA ? kM : kDepth>;
  using LayoutB = SwizzledLayout<kAlongB ? kN : kDepth>;
  using LoadA = std::conditional_t<kWeights, GatheredColumns<Element, kM, kDepth, 8, kThreads, LayoutA>,
                                   GatheredRows<Element, kPass, false, true, kM, kDepth, 8, kThreads, LayoutA>>;
  using LoadB = std::conditional_t<kAlongB, PlainRows<Element, true, kN, kDepth, 8, kThreads, LayoutB>,
                                   PlainColumns<Element, !kWeights, kN, kDepth, 8, kThreads, LayoutB>>;
};

// The same code is also compiled for compute capability 9.0 without its special instructions, and never run.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define NORMA_CONVOLUTION_ASM(...) asm volatile(__VA_ARGS__)
#else
#define NORMA_CONVOLUTION_ASM(...) __trap()
#endif
#define NORMA_N8(n) "+f"(c[0][n][0]), "+f"(c[0][n][1]), "+f"(c[0][n][2]), "+f"(c[0][n][3])
#define NORMA_N32(n) NORMA_N8(n), NORMA_N8(n + 1), NORMA_N8(n + 2), NORMA_N8(n + 3)
#define NORMA_C32                                                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NORMA_PRODUCT64(across_a, across_b)                                                                          \
  NORMA_CONVOLUTION_ASM(                                                                                             \
      "{\n.reg .b64 a, b;\nmov.b64 a, {%32, 0x40000040};\nmov.b64 b, {%33, 0x40000040};\n"                           \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" NORMA_C32 "}, a, b, 1, 1, 1, " across_a ", " across_b \
      ";\n}\n"                                                                                                       \
      : NORMA_N32(0), NORMA_N32(4)                                                                                   \
      : "r"(a), "r"(b))
#define NORMA_PRODUCT128(across_a, across_b)                                                                     \
  NORMA_CONVOLUTION_ASM(                                                                                         \
      "{\n.reg .b64 a, b;\nmov.b64 a, {%64, 0x40000040};\nmov.b64 b, {%65, 0x40000040};\n"                       \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" NORMA_C32                                        \
      ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, "        \
      "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, 1, 1, 1, " across_a ", " across_b \
      ";\n}\n"                                                                                                   \
      : NORMA_N32(0), NORMA_N32(4), NORMA_N32(8), NORMA_N32(12)                                                  \
      : "r"(a), "r"(b))
#define NORMA_C96                                                                            \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, "    \
  "%81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, "    \
  "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, " \
  "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define NORMA_PRODUCT256(across_a, across_b)                                                                      \
  NORMA_CONVOLUTION_ASM(                                                                                          \
      "{\n.reg .b64 a, b;\nmov.b64 a, {%128, 0x40000040};\nmov.b64 b, {%129, 0x40000040};\n"                      \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" NORMA_C32                                         \
      ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, "         \
      "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " NORMA_C96 "}, a, b, 1, 1, 1, " across_a \
      ", " across_b ";\n}\n"                                                                                      \
      : NORMA_N32(0), NORMA_N32(4), NORMA_N32(8), NORMA_N32(12), NORMA_N32(16), NORMA_N32(20), NORMA_N32(24),     \
        NORMA_N32(28)                                                                                             \
      : "r"(a), "r"(b))
#define NORMA_PRODUCT(across_a, across_b) \
  if constexpr (kEights == 8) {           \
    NORMA_PRODUCT64(across_a, across_b);  \
  } else if constexpr (kEights == 16) {   \
    NORMA_PRODUCT128(across_a, across_b); \
  } else {                                \
    NORMA_PRODUCT256(across_a, across_b); \
  }

// c += a b of one warpgroup, 64 x 64, 64 x 128 or 64 x 256 over 16: descriptors of the factors, and whether k runs
// along their rows.
template <bool kAlongA, bool kAlongB, int kEights>
__device__ __forceinline__ void issue_product(float (&c)[1][kEights][4], unsigned a, unsigned b) {
  static_assert(kEights == 8 || kEights == 16 || kEights == 32);
  if constexpr (kAlongA && kAlongB) {
    NORMA_PRODUCT("0", "0")
  } else if constexpr (kAlongA) {
    NORMA_PRODUCT("0", "1")
  } else {
    static_assert(!kAlongB);
    NORMA_PRODUCT("1", "1")
  }
}

#undef NORMA_PRODUCT
#undef NORMA_PRODUCT256
#undef NORMA_C96
#undef NORMA_PRODUCT128
#undef NORMA_PRODUCT64
#undef NORMA_C32
#undef NORMA_N32
#undef NORMA_N8
#undef NORMA_CONVOLUTION_ASM

// The descriptor of a tile whose columns are those of the result and more than 64: in parts of 64, kNextTile apart.
__device__ __forceinline__ unsigned in_parts(unsigned descriptor) {
  return (descriptor & 0xffffu) | attention::kNextTile << 16;
}

// One step along k of one warpgroup.
template <class B>
__device__ __forceinline__ void issue_step(typename B::Sums& c, unsigned a, unsigned b) {
  constexpr unsigned kStepA = B::kAlongA ? attention::kDepthByRows : attention::kDepthByColumns;
  constexpr unsigned kStepB = B::kAlongB ? attention::kDepthByRows : attention::kDepthByColumns;
  if (!B::kAlongB) b = in_parts(b);
#pragma unroll
  for (int k = 0; k < B::kDepth / 16; ++k) issue_product<B::kAlongA, B::kAlongB>(c, a + k * kStepA, b + k * kStepB);
}

// Accumulators of a warp to rows of f32 in shared memory.
template <class B>
__device__ __forceinline__ void put_accumulators(const typename B::Sums& c, float* shared, int first_row) {
  const int lane = attention::lane_of(), g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int n = 0; n < B::kN / 8; ++n) {
    float* const to = shared + (first_row + g) * B::kStrideOut + 8 * n + 2 * t;
    *reinterpret_cast<float2*>(to) = make_float2(c[0][n][0], c[0][n][1]);
    *reinterpret_cast<float2*>(to + 8 * B::kStrideOut) = make_float2(c[0][n][2], c[0][n][3]);
  }
}

template <ConvolutionPass kPass, int kColumns>
__global__ void __launch_bounds__(HopperBlock<kPass, kColumns>::kThreads, 2)
    hopper_convolution_kernel(const __grid_constant__ ConvolutionCall call, const int tiles_n) {
  using B = HopperBlock<kPass, kColumns>;
  using Element = typename B::Element;
  extern __shared__ unsigned char shared_bytes[];
  if (skipped(call.members, blockIdx.z)) return;
  std::byte* const member = base_of(call.members, blockIdx.z);
  const BlockPlace place(call, tiles_n, B::kM, B::kN);
  Element* const tiles_a = attention::aligned_tiles(shared_bytes);
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
  typename B::Sums c;
  attention::clear(c);
  attention::settle(c);  // before the loop: in it, they would make products wait for each other
  const int warp = static_cast<int>(threadIdx.x) / kWarp, group = warp / 4;
  // The tile of a step is read until the products of the next have begun: copies run kStages - 2 steps ahead.
  constexpr int kAhead = B::kStages - 2;
#pragma unroll
  for (int step = 0; step < kAhead; ++step) bring(step);
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<kAhead - 1>();
    attention::publish();
    __syncthreads();
    attention::begin_products();
    issue_step<B>(c, attention::descriptor(tiles_a + step % B::kStages * B::kElementsA) + group * attention::kNextTile,
                  attention::descriptor(tiles_b + step % B::kStages * B::kElementsB));
    attention::commit_products();
    attention::wait_for_products<1>();
    bring(step + kAhead);
  }
  attention::wait_for_products<0>();
  attention::settle(c);
  wait_for_copies<0>();
  __syncthreads();
  float* const shared = reinterpret_cast<float*>(tiles_a);
  put_accumulators<B>(c, shared, warp * 16);
  __syncthreads();
  write_result<B>(call, member, shared, place);
}

template <ConvolutionPass kPass, int kColumns>
int launch_hopper_tile(const ConvolutionCall& call, Stream stream) {
  using B = HopperBlock<kPass, kColumns>;
  return launch_blocks<B>(hopper_convolution_kernel<kPass, kColumns>, call, stream);
}

template <ConvolutionPass kPass>
int launch_hopper_pass(ConvolutionTile tile, const ConvolutionCall& call, Stream stream) {
  return tile == ConvolutionTile::n64 ? launch_hopper_tile<kPass, 64>(call, stream)
                                      : launch_hopper_tile<kPass, 128>(call, stream);
}

}  // namespace norma::cuda::convolution
