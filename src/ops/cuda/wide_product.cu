// A block has 256 rows of the result and walks over the depth in steps of 32, of which three are on their way to shared
// memory. The wide factor comes element by element, since its rows are aligned to no more: 32 lanes bring 32
// neighbours. Behind the last element of the depth are zeros.
#include "ops/cuda/wide_product.h"

#include <climits>

#include "ops/cuda/attention_math.cuh"

namespace norma::cuda {
namespace {

constexpr int kWideColumns = 64, kWideTile = 256, kWideDepth = 32, kWideStages = 4;
constexpr int kWideWarps = kWideTile / 32 * 2;  // each has 32 rows and 32 columns
constexpr int kColumnsStride = kWideColumns + 8;

// Neighbouring fragments meet no bank twice: strides are 4 or 8 more than a multiple of 32.
template <bool kTurned>
struct WideStage {
  static constexpr int kStride = kTurned ? kWideTile + 8 : kWideDepth + 4;
  static constexpr int kOfA = kTurned ? kWideDepth * kStride : kWideTile * kStride;
  static constexpr int kFloats = kOfA + kWideDepth * kColumnsStride;
  static constexpr int kBytes = kWideStages * kFloats * static_cast<int>(sizeof(float));
  __device__ static __forceinline__ int at(int row, int depth) {
    return kTurned ? depth * kStride + row : row * kStride + depth;
  }
};

// kBytes of them, or zeros.
template <int kBytes>
__device__ __forceinline__ void bring(float* to, const float* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(attention::shared_address(to)), "l"(from),
               "n"(kBytes), "r"(there ? kBytes : 0)
               : "memory");
}

template <bool kTurned>
class WideBlock {
  using Stage = WideStage<kTurned>;

 public:
  __device__ __forceinline__ WideBlock(const WideProduct& product, std::byte* member, float* stages)
      : a_(at<const float>(member, product.a)),
        b_(at<const float>(member, product.b)),
        out_(at<float>(member, product.out)),
        stages_(stages),
        wide_(static_cast<int>(product.wide)),
        rows_(static_cast<int>(kTurned ? product.wide : product.rows)),
        depth_(static_cast<int>(kTurned ? product.rows : product.wide)),
        first_(static_cast<int>(blockIdx.x) * kWideTile),
        warp_(static_cast<int>(threadIdx.x) / kWarp),
        lane_(attention::lane_of()) {}

  __device__ __forceinline__ void run() {
    const int steps = (depth_ + kWideDepth - 1) / kWideDepth;
#pragma unroll
    for (int step = 0; step < kWideStages - 1; ++step) bring_step(step, steps);
    for (int step = 0; step < steps; ++step) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kWideStages - 2) : "memory");
      __syncthreads();  // and nobody reads the stage that comes next any more
      bring_step(step + kWideStages - 1, steps);
      multiply(stages_ + step % kWideStages * Stage::kFloats);
    }
    store_result();
  }

 private:
  // A group of copies even if there are none: groups are counted.
  __device__ __forceinline__ void bring_step(int step, int steps) const {
    if (step < steps) {
      float* const stage = stages_ + step % kWideStages * Stage::kFloats;
      bring_a(stage, step * kWideDepth);
      const int line = static_cast<int>(threadIdx.x) / (kWideColumns / 4);
      const int column = static_cast<int>(threadIdx.x) % (kWideColumns / 4) * 4, from = step * kWideDepth + line;
      const bool there = from < depth_;
      bring<16>(stage + Stage::kOfA + line * kColumnsStride + column,
                b_ + (there ? std::int64_t{from} * kWideColumns + column : 0), there);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  __device__ __forceinline__ void bring_a(float* stage, int begin) const {
    if constexpr (kTurned) {
#pragma unroll
      for (int line = warp_ * 2; line < warp_ * 2 + 2; ++line) {
#pragma unroll
        for (int row = lane_; row < kWideTile; row += kWarp) {
          const bool there = begin + line < depth_ && first_ + row < rows_;
          bring<4>(stage + Stage::at(row, line), a_ + (there ? std::int64_t{begin + line} * wide_ + first_ + row : 0),
                   there);
        }
      }
    } else {
      const bool there = begin + lane_ < depth_;
#pragma unroll
      for (int i = 0; i < kWideTile / kWideWarps; ++i) {
        const int row = warp_ + i * kWideWarps;
        const std::int64_t from = min(first_ + row, rows_ - 1);
        bring<4>(stage + Stage::at(row, lane_), a_ + (there ? from * wide_ + begin + lane_ : 0), there);
      }
    }
  }

  __device__ __forceinline__ void multiply(const float* stage) {
    const int g = attention::MatrixLanes::g(), t = attention::MatrixLanes::t();
    const float* const b_at = stage + Stage::kOfA + t * kColumnsStride + warp_ % 2 * 32 + g;
    const int row = warp_ / 2 * 32 + g;
#pragma unroll
    for (int k = 0; k < kWideDepth; k += 8) {
      unsigned a[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          a[m][i] = attention::round_to_tf32(stage[Stage::at(row + m * 16 + i % 2 * 8, k + t + i / 2 * 4)]);
        }
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const unsigned b0 = attention::round_to_tf32(b_at[k * kColumnsStride + n * 8]);
        const unsigned b1 = attention::round_to_tf32(b_at[(k + 4) * kColumnsStride + n * 8]);
#pragma unroll
        for (int m = 0; m < 2; ++m) attention::Tf32Unit::mma(sums_[m][n], a[m], b0, b1);
      }
    }
  }

  __device__ __forceinline__ void store_result() const {
    const int g = attention::MatrixLanes::g(), column = warp_ % 2 * 32 + attention::MatrixLanes::t() * 2;
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = first_ + warp_ / 2 * 32 + m * 16 + half * 8 + g;
        if (row >= rows_) continue;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          *reinterpret_cast<float2*>(out_ + std::int64_t{row} * kWideColumns + column + n * 8) =
              make_float2(sums_[m][n][2 * half], sums_[m][n][2 * half + 1]);
        }
      }
    }
  }

  const float* const a_;
  const float* const b_;
  float* const out_;
  float* const stages_;
  const int wide_, rows_, depth_, first_, warp_, lane_;
  float sums_[2][4][4] = {};
};

template <bool kTurned>
__global__ void __launch_bounds__(kWideWarps* kWarp, 1)
    wide_product_kernel(const __grid_constant__ WideProduct product) {
  if (skipped(product.members, blockIdx.y)) return;
  extern __shared__ __align__(16) float wide_stages[];
  WideBlock<kTurned>(product, base_of(product.members, blockIdx.y), wide_stages).run();
}

template <bool kTurned>
int wide_product_as(const WideProduct& product, Stream stream) {
  static_assert(kWideDepth * kWideColumns / 4 == kWideWarps * kWarp && kWideDepth == kWarp);
  static_assert(kWideWarps * 2 == kWideDepth);
  constexpr int kBytes = WideStage<kTurned>::kBytes;
  const cudaError_t status =
      cudaFuncSetAttribute(wide_product_kernel<kTurned>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (status != cudaSuccess) return static_cast<int>(status);
  const dim3 grid(blocks_for(kTurned ? product.wide : product.rows, kWideTile),
                  static_cast<unsigned>(product.members.count));
  wide_product_kernel<kTurned><<<grid, kWideWarps * kWarp, kBytes, stream>>>(product);
  return launched();
}

}  // namespace

bool is_wide(const Product& product, const WideProduct& wide) {
  constexpr std::int64_t kFewestBlocks = 264, kNarrowest = 256;  // two for each multiprocessor; less is the library's
  const bool f32 = product.a == DType::f32 && product.b == DType::f32 && product.c == DType::f32;
  const bool plain = product.batch == 1 && !product.transpose_b && !product.accumulate && !product.relu;
  return f32 && plain && product.math == Math::tf32 && product.n == kWideColumns && wide.wide % 4 != 0 &&
         wide.wide >= kNarrowest && wide.wide < INT_MAX / 2 && wide.rows < INT_MAX / 2 &&
         divide_up(product.m, kWideTile) * wide.members.count >= kFewestBlocks && aligned(16, {wide.b, wide.out});
}

int wide_product(const WideProduct& product, Stream stream) {
  return product.turned ? wide_product_as<true>(product, stream) : wide_product_as<false>(product, stream);
}

}  // namespace norma::cuda
