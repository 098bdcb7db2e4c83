// A block has 64 rows of x at a time and the whole weight in shared memory: z = x W and dx = dz W^T with wgmma, and
// what lies between them in registers, a row in four threads. See cross_entropy_rows.cu for the formulas.
#include "ops/cuda/cross_entropy_projection.h"

#include <algorithm>

#include "ops/cuda/hopper_product.h"

#ifdef NORMA_SM90A
#include "ops/cuda/attention_wgmma.cuh"
#include "ops/cuda/multiprocessors.cuh"
#endif

namespace norma::cuda {

#ifdef NORMA_SM90A

namespace projection {
namespace {

using namespace attention;

constexpr std::int64_t kMostClasses = 256, kMostWidth = 128;
constexpr int kResident = 2;  // blocks that share a multiprocessor

// The weight in shared memory: tiles of 64 x 64, column by column of tiles; x: two buffers of a tile after the other.
template <int kWide, int kClasses, bool kTransposed>
struct Tiles {
  static constexpr int kDown = kTransposed ? kClasses : kWide, kAcross = kTransposed ? kWide : kClasses;
  static constexpr int kOfWeight = kWide * kClasses;
  static constexpr std::int64_t kBytes = (kOfWeight + 2 * kWide) * std::int64_t{kTileBytes} + 1024;
  HopperTile* first;
  unsigned at;

  __device__ __forceinline__ explicit Tiles(unsigned char* memory)
      : first(aligned_tiles(memory)), at(descriptor(first)) {}
  __device__ __forceinline__ void load_weight(const ProjectedRows& call, std::byte* member) const {
    const int rows = static_cast<int>(kTransposed ? call.rows.classes : call.width);
    const int columns = static_cast<int>(kTransposed ? call.width : call.rows.classes);
    const HopperTile* const weight = cuda::at<const HopperTile>(member, call.weight);
#pragma unroll
    for (int i = 0; i < kAcross; ++i) {
      RowLoader<kDown * kSide, kGroup>({weight + i * kSide, columns}, 0, rows, columns - i * kSide)
          .load(first + i * kDown * kSide * kLine);
    }
  }
  __device__ __forceinline__ unsigned weight(int wide, int classes) const {
    return at + (kTransposed ? wide * kDown + classes : classes * kDown + wide) * kNextTile;
  }
  __device__ __forceinline__ HopperTile* x(int buffer, int wide) const {
    return first + (kOfWeight + buffer * kWide + wide) * kSide * kLine;
  }
  __device__ __forceinline__ void load_x(const ProjectedRows& call, std::byte* member, int buffer, int row) const {
    const HopperTile* const x_of = cuda::at<const HopperTile>(member, call.x);
    const int rows = static_cast<int>(call.rows.rows), width = static_cast<int>(call.width);
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
      RowLoader<kSide, kGroup>({x_of + i * kSide, call.width}, row, rows, width - i * kSide).load(x(buffer, i));
    }
  }
};

// 16 rows of a tile of each warp, as a first factor.
__device__ __forceinline__ void load_fragment(Fragment& a, const HopperTile* tile) {
  const int lane = lane_of(), row = static_cast<int>(threadIdx.x) / kWarp * 16 + (lane & 15);
#pragma unroll
  for (int k = 0; k < kDepthSteps; ++k) load_matrices(a[k], tile + swizzled(row, k * 16 + (lane >> 4) * 8));
}

// What a thread knows of one of its two rows.
struct Row {
  int target;
  bool there, ignored, known;
  float scale, loss = 0.0f;

  __device__ __forceinline__ Row(const CrossEntropyRows& call, std::byte* member, std::int64_t row, float of_mean)
      : target(call.ignore), there(row < call.rows) {
    if (there) target = cuda::at<const std::int32_t>(member, call.targets)[row];
    ignored = target == call.ignore;
    known = target >= 0 && target < call.classes;
    scale = ignored ? 0.0f : known ? of_mean : NAN;
  }
};

// Logits of the thread's rows become gradients; loss and log-sum-exp of each are known afterwards.
template <int kClasses>
__device__ __forceinline__ void differentiate(Accumulator (&z)[kClasses], int half, Row& row, float& lse, int classes,
                                              float smoothing) {
  const int first = 2 * MatrixLanes::t();
  float top = -INFINITY, sum = 0.0f, total = 0.0f, wanted = 0.0f;
#pragma unroll
  for (int tile = 0; tile < kClasses; ++tile) {
#pragma unroll
    for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        float& logit = z[tile][0][n][i];
        const int column = tile * kSide + n * 8 + (i & 1);
        if (column == row.target - first) wanted = logit;
        if (smoothing != 0.0f && column < classes - first) total += logit;
        if (classes < kClasses * kSide && column >= classes - first) logit = -INFINITY;
        top = fmaxf(top, logit);
      }
    }
  }
  top = row_max<MatrixLanes>(top);
  const float shift = top == -INFINITY ? 0.0f : top * kLog2E;
#pragma unroll
  for (int tile = 0; tile < kClasses; ++tile) {
#pragma unroll
    for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        float& share = z[tile][0][n][i];
        share = power_of_two(fmaf(share, kLog2E, -shift));
        sum += share;
      }
    }
  }
  sum = row_sum<MatrixLanes>(sum);
  wanted = row_sum<MatrixLanes>(wanted);  // of one thread
  lse = top == -INFINITY ? NAN : top + logf(sum);
  float loss = row.known ? lse - wanted : NAN;
  if (smoothing != 0.0f) {
    total = row_sum<MatrixLanes>(total);
    loss = (1.0f - smoothing) * loss + smoothing * (lse - total / static_cast<float>(classes));
  }
  row.loss = row.ignored ? 0.0f : loss;
  const float factor = row.scale / sum, uniform = row.scale * smoothing / static_cast<float>(classes);
  const float less = row.scale * (1.0f - smoothing);
#pragma unroll
  for (int tile = 0; tile < kClasses; ++tile) {
#pragma unroll
    for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        float& gradient = z[tile][0][n][i];
        const int column = tile * kSide + n * 8 + (i & 1);
        gradient = fmaf(gradient, factor, -uniform);
        if (column == row.target - first) gradient -= less;
        if (row.ignored) gradient = 0.0f;
      }
    }
  }
}

// A block has tiles of 64 rows of x, kParts apart, of which the next is on its way; all classes are in registers.
template <int kWide, int kClasses, bool kTransposed>
__global__ void __launch_bounds__(kGroup, kResident)
    projected_rows_kernel(const __grid_constant__ ProjectedRows call, std::int64_t losses, std::int64_t scale_at) {
  extern __shared__ __align__(1024) unsigned char memory[];
  std::byte* const member = member_of(call.rows.members);
  if (member == nullptr) return;
  const Tiles<kWide, kClasses, kTransposed> tiles(memory);
  const int rows = static_cast<int>(call.rows.rows), classes = static_cast<int>(call.rows.classes);
  const int hop = static_cast<int>(gridDim.x) * kSide;
  int first = static_cast<int>(blockIdx.x) * kSide, buffer = 0;
  tiles.load_weight(call, member);
  tiles.load_x(call, member, buffer, first);
  const float smoothing = *cuda::at<const float>(member, call.rows.smoothing);
  const float scale = *cuda::at<const float>(member, scale_at);
  const int own = static_cast<int>(threadIdx.x) / kWarp * 16 + MatrixLanes::g();
  const HeadRows<HopperTile> dlogits{cuda::at<HopperTile>(member, call.rows.logits), classes};
  const HeadRows<HopperTile> dx{cuda::at<HopperTile>(member, call.dx), call.width};
  for (; first < rows; first += hop, buffer ^= 1) {
    Row of[2] = {{call.rows, member, first + own, scale}, {call.rows, member, first + own + 8, scale}};
    wait_for_copies();
    publish();  // the weight, the first time
    __syncthreads();
    if (first + hop < rows) tiles.load_x(call, member, buffer ^ 1, first + hop);
    Fragment x[kWide];
#pragma unroll
    for (int i = 0; i < kWide; ++i) load_fragment(x[i], tiles.x(buffer, i));
    Accumulator z[kClasses];
#pragma unroll
    for (int n = 0; n < kClasses; ++n) {
      clear(z[n]);
      settle(z[n]);
    }
    begin_products();
#pragma unroll
    for (int n = 0; n < kClasses; ++n) {
#pragma unroll
      for (int i = 0; i < kWide; ++i) {
        if constexpr (kTransposed) {
          issue_held_rows(z[n], x[i], tiles.weight(i, n));
        } else {
          issue_held(z[n], x[i], tiles.weight(i, n));
        }
      }
    }
    commit_products();
    wait_for_products<0>();
#pragma unroll
    for (int n = 0; n < kClasses; ++n) settle(z[n]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float lse;
      differentiate<kClasses>(z, half, of[half], lse, classes, smoothing);
      const std::int64_t row = first + own + half * 8;
      if (of[half].there && MatrixLanes::t() == 0) {
        cuda::at<float>(member, call.rows.lse)[row] = lse;
        cuda::at<float>(member, losses)[row] = of[half].loss;
      }
    }
    const int begin = first + static_cast<int>(threadIdx.x) / kWarp * 16;
    Fragment dz[kClasses];
#pragma unroll
    for (int n = 0; n < kClasses; ++n) {
      store_rows<kSide / 8>({dlogits.first + n * kSide, dlogits.row}, begin, rows, rows, classes - n * kSide, z[n],
                            1.0f, 1.0f);
      pack_fragment(dz[n], z[n]);
    }
    Accumulator back[kWide];
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
      clear(back[i]);
      settle(back[i]);
    }
    begin_products();
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
#pragma unroll
      for (int n = 0; n < kClasses; ++n) {
        if constexpr (kTransposed) {
          issue_held(back[i], dz[n], tiles.weight(i, n));
        } else {
          issue_held_rows(back[i], dz[n], tiles.weight(i, n));
        }
      }
    }
    commit_products();
    wait_for_products<0>();
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
      settle(back[i]);
      store_rows<kSide / 8>({dx.first + i * kSide, dx.row}, begin, rows, rows, static_cast<int>(call.width) - i * kSide,
                            back[i], 1.0f, 1.0f);
    }
  }
}

template <int kWide, int kClasses, bool kTransposed>
int launch(const ProjectedRows& call, std::int64_t losses, std::int64_t scale, Stream stream) {
  constexpr auto kKernel = projected_rows_kernel<kWide, kClasses, kTransposed>;
  constexpr auto kBytes = static_cast<int>(Tiles<kWide, kClasses, kTransposed>::kBytes);
  const cudaError_t raised = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (raised != cudaSuccess) return static_cast<int>(raised);
  const std::int64_t members = std::max(call.rows.members.count, 1);
  const std::int64_t wanted = std::max<std::int64_t>(std::int64_t{kResident} * multiprocessors() / members, 1);
  const std::int64_t parts = std::min(wanted, divide_up(call.rows.rows, kSide));
  const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(members));
  kKernel<<<grid, kGroup, kBytes, stream>>>(call, losses, scale);
  return launched();
}

template <bool kTransposed>
int launch_by_size(const ProjectedRows& call, std::int64_t losses, std::int64_t scale, Stream stream) {
  const bool wide = call.width > kSide, many = call.rows.classes > 2 * kSide;
  if (wide && many) return launch<2, 4, kTransposed>(call, losses, scale, stream);
  if (wide) return launch<2, 2, kTransposed>(call, losses, scale, stream);
  if (many) return launch<1, 4, kTransposed>(call, losses, scale, stream);
  return launch<1, 2, kTransposed>(call, losses, scale, stream);
}

}  // namespace
}  // namespace projection

bool fits(const ProjectedRows& call) {
  return call.rows.narrow && call.width <= projection::kMostWidth && call.rows.classes <= projection::kMostClasses &&
         call.width % 8 == 0 && call.rows.classes % 8 == 0 && call.rows.rows > 0 && call.rows.rows < (1 << 30) &&
         aligned(16, {call.x, call.weight, call.dx, call.rows.logits}) && has_hopper_products();
}

int projected_losses_and_gradients(const ProjectedRows& call, std::int64_t losses, std::int64_t scale, Stream stream) {
  return call.transposed ? projection::launch_by_size<true>(call, losses, scale, stream)
                         : projection::launch_by_size<false>(call, losses, scale, stream);
}

#else

bool fits(const ProjectedRows&) { return false; }
int projected_losses_and_gradients(const ProjectedRows&, std::int64_t, std::int64_t, Stream) {
  return cudaErrorNotSupported;
}

#endif

}  // namespace norma::cuda
