// Each warp walks over its own chunks of 16 rows: it brings the next one to shared memory while it multiplies this one,
// and sends results out by whole rows through the place that the chunk had. A block shares nothing but the weight.
#include "ops/cuda/thin_product.h"

#include <algorithm>

#include "ops/cuda/activation_math.cuh"
#include "ops/cuda/attention_math.cuh"

namespace norma::cuda {
namespace {

constexpr int kThinWidth = 64, kThinChunk = 16, kThinWarps = 8;
constexpr int kThinStride = attention::stride_of<float>(kThinWidth);  // of a row in shared memory
constexpr int kThinPlace = kThinChunk * kThinStride;
constexpr int kThinBytes = (kThinWidth * kThinStride + 2 * kThinWarps * kThinPlace) * static_cast<int>(sizeof(float));
constexpr int kThinLanes = kThinWidth / 4, kThinAtOnce = kWarp / kThinLanes;  // of a row, and rows of a warp's access
constexpr int kThinAccesses = kThinChunk / kThinAtOnce;

// Rows [first, first + 16); behind the last row, that row again.
__device__ __forceinline__ void bring_chunk(float* to, const float* a, std::int64_t first, std::int64_t rows) {
  const int lane = attention::lane_of(), column = lane % kThinLanes * 4;
#pragma unroll
  for (int i = 0; i < kThinAccesses; ++i) {
    const int row = i * kThinAtOnce + lane / kThinLanes;
    const std::int64_t from = min(first + row, rows - 1);
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(attention::shared_address(to + row * kThinStride + column)),
        "l"(a + from * kThinWidth + column)
        : "memory");
  }
}
__device__ __forceinline__ void end_of_chunk() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// All chunks but the last one asked for are there, for the whole warp.
__device__ __forceinline__ void wait_for_chunk() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncwarp();
}

// to[n, k] = b; neighbouring lanes have neighbouring k, so that what is stored transposed meets no bank twice.
__device__ __forceinline__ void bring_weight(float* to, const float* b, bool transposed) {
  for (int i = static_cast<int>(threadIdx.x); i < kThinWidth * kThinWidth / 4; i += kThinWarps * kWarp) {
    const int line = transposed ? i / kThinLanes : i % kThinWidth;
    const int column = (transposed ? i % kThinLanes : i / kThinWidth) * 4;
    float values[4];
    load<float, 4>(b + line * kThinWidth + column, values);
    if (transposed) {
      store<float, 4>(to + line * kThinStride + column, values);
      continue;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) to[(column + j) * kThinStride + line] = values[j];
  }
}

template <Activation F>
__global__ void __launch_bounds__(kThinWarps* kWarp, 2)
    thin_product_kernel(const __grid_constant__ ThinProduct product) {
  if (skipped(product.members, blockIdx.y)) return;
  extern __shared__ float thin_shared[];
  std::byte* const member = base_of(product.members, blockIdx.y);
  const float* const a = at<const float>(member, product.a);
  const float* const before = at<const float>(member, product.before);
  float* const out = at<float>(member, product.out);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = attention::lane_of();
  const int column = lane % kThinLanes * 4, line = lane / kThinLanes;
  float* const weight = thin_shared;
  float* const places = weight + kThinWidth * kThinStride + warp * 2 * kThinPlace;
  const std::int64_t step = std::int64_t{gridDim.x} * kThinWarps * kThinChunk;
  std::int64_t first = (std::int64_t{blockIdx.x} * kThinWarps + warp) * kThinChunk;
  if (first < product.rows) bring_chunk(places, a, first, product.rows);
  end_of_chunk();
  bring_weight(weight, at<const float>(member, product.b), product.transpose_b);
  __syncthreads();
  for (int turn = 0; first < product.rows; first += step, turn ^= 1) {
    float* const place = places + turn * kThinPlace;
    if (first + step < product.rows) bring_chunk(places + (turn ^ 1) * kThinPlace, a, first + step, product.rows);
    end_of_chunk();
    float given[kThinAccesses][4];
    if constexpr (F != Activation::none) {
#pragma unroll
      for (int i = 0; i < kThinAccesses; ++i) {
        const std::int64_t row = min(first + i * kThinAtOnce + line, product.rows - 1);
        load<float, 4>(before + row * kThinWidth + column, given[i]);
      }
    }
    wait_for_chunk();
    float c[1][kThinWidth / 8][4];
    attention::clear(c);
    attention::Tf32Math::multiply_rows<1, kThinWidth / 8, kThinWidth, kThinStride>(c, place, weight);
    __syncwarp();
    float* const mine = place + attention::MatrixLanes::g() * kThinStride + 2 * attention::MatrixLanes::t();
#pragma unroll
    for (int n = 0; n < kThinWidth / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        *reinterpret_cast<float2*>(mine + half * 8 * kThinStride + n * 8) =
            make_float2(c[0][n][2 * half], c[0][n][2 * half + 1]);
      }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kThinAccesses; ++i) {
      const int row = i * kThinAtOnce + line;
      float values[4];
      load<float, 4>(place + row * kThinStride + column, values);
      if constexpr (F != Activation::none) {
#pragma unroll
        for (int j = 0; j < 4; ++j) values[j] *= activation_slope<F, Exactness::f32>(given[i][j]);
      }
      if (first + row < product.rows) store<float, 4>(out + (first + row) * kThinWidth + column, values);
    }
    __syncwarp();  // before the next chunk but one is brought here
  }
}

template <Activation F>
int thin_product_as(const ThinProduct& product, Stream stream) {
  constexpr std::int64_t kBlocks = 264;  // all that fit a card of 132 multiprocessors at once
  const cudaError_t status =
      cudaFuncSetAttribute(thin_product_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize, kThinBytes);
  if (status != cudaSuccess) return static_cast<int>(status);
  const std::int64_t most = divide_up(product.rows, kThinChunk * kThinWarps);
  const std::int64_t parts = std::clamp<std::int64_t>(kBlocks / product.members.count, 1, most);
  const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(product.members.count));
  thin_product_kernel<F><<<grid, kThinWarps * kWarp, kThinBytes, stream>>>(product);
  return launched();
}

}  // namespace

bool is_thin(const Product& product, const ThinProduct& thin) {
  const bool wide = product.a == DType::f32 && product.b == DType::f32 && product.c == DType::f32;
  return wide && product.math == Math::tf32 && product.k == kThinWidth && product.n == kThinWidth &&
         product.batch == 1 && !product.transpose_a && !product.accumulate && !product.relu &&
         aligned(16, {thin.a, thin.b, thin.out, thin.before});
}

int thin_product(const ThinProduct& product, Activation f, Stream stream) {
  if (product.before < 0) return thin_product_as<Activation::none>(product, stream);
  switch (f) {
    case Activation::relu: return thin_product_as<Activation::relu>(product, stream);
    case Activation::gelu: return thin_product_as<Activation::gelu>(product, stream);
    case Activation::gelu_tanh: return thin_product_as<Activation::gelu_tanh>(product, stream);
    case Activation::silu: return thin_product_as<Activation::silu>(product, stream);
    case Activation::none: break;
  }
  return thin_product_as<Activation::none>(product, stream);
}

}  // namespace norma::cuda
