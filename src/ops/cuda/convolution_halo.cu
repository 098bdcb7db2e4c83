#include "ops/cuda/convolution_halo.cuh"

namespace norma::cuda::halo {
namespace {

using attention::Bf16Unit;
using attention::load_matrices;
using attention::load_matrices_transposed;

constexpr int kHaloWarps = 4, kHaloThreads = kHaloWarps * kWarp;
constexpr int kWarpGroups = kGroups / kHaloWarps;

// A part of one image: rows [first, first + rows) of all columns, with a border of one pixel in shared memory.
struct HaloPart {
  int image, first, rows, line;  // line: pixels of a row in shared memory

  __device__ __forceinline__ HaloPart(const HaloCall& call, int index) : rows(kHaloPixels / call.width) {
    const int parts = call.height / rows;
    image = index / parts;
    first = (index - image * parts) * rows;
    line = call.width + 2;
  }
  __device__ __forceinline__ std::int64_t pixel(const HaloCall& call) const {
    return (std::int64_t{image} * call.height + first) * call.width;
  }
};

// Where the first tap of a pixel lies in shared memory. Widths are powers of two.
__device__ __forceinline__ int corner_of(const HaloCall& call, int pixel) {
  const int y = pixel >> (__ffs(call.width) - 1);
  return pixel + 2 * y;
}

// The part with its border, zeros outside of the image. All threads.
template <int kChunks>
__device__ __forceinline__ void bring_halo(const HaloCall& call, const HaloPart& part, const __nv_bfloat16* images,
                                           unsigned char* to) {
  const int thread = static_cast<int>(threadIdx.x), bits = __ffs(call.width) - 1;
  for (int i = thread; i < (part.rows + 2) * call.width * kChunks; i += kHaloThreads) {
    const int pixel = i / kChunks, chunk = i % kChunks, row = pixel >> bits, column = pixel & (call.width - 1);
    const int y = part.first + row - 1;
    const bool inside = y >= 0 && y < call.height;
    const std::int64_t from = (std::int64_t{part.image} * call.height + (inside ? y : 0)) * call.width + column;
    copy_chunk(to + place_of<kChunks>(row * part.line + 1 + column, chunk), images + (from * kChunks + chunk) * 8,
               inside);
  }
  for (int i = thread; i < (part.rows + 2) * 2 * kChunks; i += kHaloThreads) {
    const int row = i / (2 * kChunks), side = i / kChunks % 2, chunk = i % kChunks;
    *reinterpret_cast<uint4*>(to + place_of<kChunks>(row * part.line + side * (part.line - 1), chunk)) =
        make_uint4(0, 0, 0, 0);
  }
}

// Rows of kChunks * 8 elements that follow each other.
template <int kChunks>
__device__ __forceinline__ void bring_rows(const __nv_bfloat16* from, int rows, unsigned char* to) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * kChunks; i += kHaloThreads)
    copy_chunk(to + place_of<kChunks>(i / kChunks, i % kChunks), from + i * 8, true);
}

__host__ __device__ constexpr int round_to_line(int bytes) { return (bytes + 127) / 128 * 128; }
__host__ __device__ constexpr int halo_bytes(int width, int channels) {
  return round_to_line((kHaloPixels / width + 2) * (width + 2) * channels * 2);
}

// Forward, and by the image (kBack), whose taps reach the other way and whose weights are read across. kDepth channels
// are gathered, kN written.
template <int kDepth, int kN, bool kBack>
__global__ void __launch_bounds__(kHaloThreads) halo_image_kernel(const __grid_constant__ HaloCall call) {
  constexpr int kChunks = kDepth / 8, kOutChunks = kN / 8;
  constexpr int kWeightChunks = kBack ? kChunks : kOutChunks, kWeightRows = kTaps * (kBack ? kN : kDepth);
  extern __shared__ __align__(128) unsigned char shared[];
  if (skipped(call.members, blockIdx.y)) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const HaloPart part(call, static_cast<int>(blockIdx.x));
  unsigned char* const weights = shared + halo_bytes(call.width, kDepth);
  bring_halo<kChunks>(call, part, at<const __nv_bfloat16>(member, call.a), shared);
  bring_rows<kWeightChunks>(at<const __nv_bfloat16>(member, call.b), kWeightRows, weights);
  commit();
  const int lane = attention::lane_of(), warp = static_cast<int>(threadIdx.x) / kWarp;
  const int low = lane & 7, middle = (lane >> 3 & 1) * 8, high = lane >> 4;
  int corner[kWarpGroups];  // the pixel of the first tap, of the lane's row of each group
#pragma unroll
  for (int m = 0; m < kWarpGroups; ++m) {
    const int pixel = (warp * kWarpGroups + m) * 16 + low + middle;
    corner[m] = corner_of(call, pixel);
  }
  float c[kWarpGroups][kN / 8][4];
  attention::clear(c);
  wait<0>();
  __syncthreads();
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    const int moved = kBack ? (2 - tap / 3) * part.line + 2 - tap % 3 : tap / 3 * part.line + tap % 3;
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      unsigned b[kN / 16][4];
#pragma unroll
      for (int n = 0; n < kN / 16; ++n) {
        if constexpr (kBack) {
          const int row = tap * kN + n * 16 + low + high * 8;
          load_matrices(b[n], weights + place_of<kWeightChunks>(row, 2 * k + middle / 8));
        } else {
          const int row = tap * kDepth + k * 16 + low + middle;
          load_matrices_transposed(b[n], weights + place_of<kWeightChunks>(row, 2 * n + high));
        }
      }
#pragma unroll
      for (int m = 0; m < kWarpGroups; ++m) {
        unsigned a[4];
        load_matrices(a, shared + place_of<kChunks>(corner[m] + moved, 2 * k + high));
#pragma unroll
        for (int n = 0; n < kN / 16; ++n) {
          Bf16Unit::mma(c[m][2 * n], a, b[n][0], b[n][1]);
          Bf16Unit::mma(c[m][2 * n + 1], a, b[n][2], b[n][3]);
        }
      }
    }
  }
  __syncthreads();                   // nobody reads the part any more
  constexpr int kRow = kN * 2 + 16;  // bytes
  const int g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int m = 0; m < kWarpGroups; ++m) {
#pragma unroll
    for (int n = 0; n < kN / 8; ++n) {
      unsigned char* const to = shared + ((warp * kWarpGroups + m) * 16 + g) * kRow + (8 * n + 2 * t) * 2;
      *reinterpret_cast<unsigned*>(to) = attention::pack_pair(c[m][n][0], c[m][n][1]);
      *reinterpret_cast<unsigned*>(to + 8 * kRow) = attention::pack_pair(c[m][n][2], c[m][n][3]);
    }
  }
  __syncthreads();
  __nv_bfloat16* const out = at<__nv_bfloat16>(member, call.out) + part.pixel(call) * kN;
  for (int i = static_cast<int>(threadIdx.x); i < kHaloPixels * kOutChunks; i += kHaloThreads) {
    *reinterpret_cast<uint4*>(out + i * 8) =
        *reinterpret_cast<const uint4*>(shared + i / kOutChunks * kRow + i % kOutChunks * 16);
  }
}

// By the weights. A warp has 16 channels of the image and 16 of the gradient, all taps; where that leaves warps over,
// they share the pixels, and their sums are added in order.
template <int kIn, int kOut>
__global__ void __launch_bounds__(kHaloThreads) halo_weights_kernel(const __grid_constant__ HaloCall call) {
  constexpr int kChunks = kIn / 8, kOutChunks = kOut / 8, kQuarters = kIn / 16 * (kOut / 16);
  constexpr int kSharing = kHaloWarps / kQuarters;
  extern __shared__ __align__(128) unsigned char shared[];
  if (skipped(call.members, blockIdx.y)) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const int parts = call.batch * (call.height * call.width / kHaloPixels);
  const int begin = static_cast<int>(blockIdx.x) * call.tiles_per_split;
  const int end = min(begin + call.tiles_per_split, parts);
  const int image_bytes = halo_bytes(call.width, kIn), stage_bytes = image_bytes + kHaloPixels * kOut * 2;
  const auto bring = [&](int index) {
    if (index < end) {
      const HaloPart part(call, index);
      unsigned char* const to = shared + (index - begin) % 2 * stage_bytes;
      bring_halo<kChunks>(call, part, at<const __nv_bfloat16>(member, call.a), to);
      bring_rows<kOutChunks>(at<const __nv_bfloat16>(member, call.b) + part.pixel(call) * kOut, kHaloPixels,
                             to + image_bytes);
    }
    commit();
  };
  const int lane = attention::lane_of(), warp = static_cast<int>(threadIdx.x) / kWarp;
  const int low = lane & 7, middle = lane >> 3 & 1, high = lane >> 4;
  const int quarter = warp % kQuarters, in_chunk = quarter % (kIn / 16) * 2, out_chunk = quarter / (kIn / 16) * 2;
  const int line = call.width + 2;
  float c[kTaps][2][4];
  attention::clear(c);
  bring(begin);
  for (int index = begin; index < end; ++index) {
    bring(index + 1);
    wait<1>();
    __syncthreads();
    const unsigned char* const image = shared + (index - begin) % 2 * stage_bytes;
    const unsigned char* const gradient = image + image_bytes;
    for (int group = warp / kQuarters; group < kGroups; group += kSharing) {
      unsigned b[4];
      load_matrices_transposed(b, gradient + place_of<kOutChunks>(group * 16 + low + middle * 8, out_chunk + high));
      const int corner = corner_of(call, group * 16 + low + high * 8);
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        unsigned a[4];
        load_matrices_transposed(a, image + place_of<kChunks>(corner + tap / 3 * line + tap % 3, in_chunk + middle));
        Bf16Unit::mma(c[tap][0], a, b[0], b[1]);
        Bf16Unit::mma(c[tap][1], a, b[2], b[3]);
      }
    }
    __syncthreads();  // the next but one overwrites what was read
  }
  wait<0>();
  __syncthreads();
  // [sharing warps][taps, in, out], then their sum.
  constexpr int kElements = kTaps * kIn * kOut;
  float* const sums = reinterpret_cast<float*>(shared);
  const int g = lane >> 2, t = lane & 3;
  float* const out = at<float>(member, call.out) + std::int64_t{blockIdx.x} * kElements;
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int place = (tap * kIn + in_chunk * 8 + g) * kOut + out_chunk * 8 + 8 * n + 2 * t;
      float* const to = kSharing == 1 ? out : sums + warp / kQuarters * kElements;
      *reinterpret_cast<float2*>(to + place) = make_float2(c[tap][n][0], c[tap][n][1]);
      *reinterpret_cast<float2*>(to + place + 8 * kOut) = make_float2(c[tap][n][2], c[tap][n][3]);
    }
  }
  if constexpr (kSharing > 1) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kElements; i += kHaloThreads) {
      float all = sums[i];
#pragma unroll
      for (int other = 1; other < kSharing; ++other) all += sums[other * kElements + i];
      out[i] = all;
    }
  }
}

template <int kChannels>
int launch_halo_pass(ConvolutionPass pass, const HaloCall& call, Stream stream) {
  constexpr int kWeights = kTaps * kChannels * kChannels;
  if (pass == ConvolutionPass::weights) {
    const int stages = 2 * (halo_bytes(call.width, kChannels) + kHaloPixels * kChannels * 2);
    const int sums = kChannels == 16 ? kHaloWarps * kWeights * static_cast<int>(sizeof(float)) : 0;
    return launch(halo_weights_kernel<kChannels, kChannels>, call, call.splits, kHaloThreads,
                  stages > sums ? stages : sums, stream);
  }
  const int bytes = halo_bytes(call.width, kChannels) + kWeights * 2, rows = kHaloPixels * (kChannels * 2 + 16);
  const int blocks = call.batch * (call.height * call.width / kHaloPixels);
  return launch(pass == ConvolutionPass::data ? halo_image_kernel<kChannels, kChannels, true>
                                              : halo_image_kernel<kChannels, kChannels, false>,
                call, blocks, kHaloThreads, bytes > rows ? bytes : rows, stream);
}

}  // namespace

int convolve_few(ConvolutionPass pass, const HaloCall& call, Stream stream) {
  return call.in == 16 ? launch_halo_pass<16>(pass, call, stream) : launch_halo_pass<32>(pass, call, stream);
}

}  // namespace norma::cuda::halo
