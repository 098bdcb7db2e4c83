#include "ops/cuda/convolution_patches.h"

#include "ops/cuda/convolution_halo.cuh"
#include "ops/cuda/convolution_place.cuh"

namespace norma::cuda {
namespace {

using attention::Bf16Unit;
using attention::load_matrices;
using attention::load_matrices_transposed;
using convolution::divide;
using halo::commit;
using halo::copy_chunk;
using halo::place_of;

constexpr int kPatchWarps = 4, kPatchThreads = kPatchWarps * kWarp;

// Patches are rows of kDepth numbers, the last of them zeros, of which kN columns of the result are made.
template <int kDepth, int kN>
struct PatchTile {
  static constexpr int kChunks = kDepth / 8, kOutChunks = kN / 8;
  static constexpr int kPatchBytes = kPatchPixels * kDepth * 2, kColumnBytes = kN * 2;
  static constexpr int kOutRow = kColumnBytes + 16;  // bytes of a pixel on its way out
};

__device__ __forceinline__ int patch_size(const PatchCall& call) {
  return call.kernel_height * call.kernel_width * call.in;
}

// The patch of one pixel for each thread. What is outside of the image, or behind the last pixel, is zero.
template <int kDepth>
__device__ __forceinline__ void gather_patch(const PatchCall& call, const __nv_bfloat16* images, int first,
                                             unsigned char* to) {
  constexpr int kChunks = kDepth / 8;
  const int mine = static_cast<int>(threadIdx.x), pixel = first + mine;
  const bool there = pixel < call.pixels;
  const int line = divide(there ? pixel : 0, call.by_out_width), image = divide(line, call.by_out_height);
  const int top = (line - image * call.out_height) * call.stride - call.padding;
  const int left = ((there ? pixel : 0) - line * call.out_width) * call.stride - call.padding;
  const __nv_bfloat16* const from = images + std::int64_t{image} * call.height * call.width * call.in;
  int row = 0, column = 0, channel = 0;
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    std::uint32_t words[4];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      std::uint32_t both = 0;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int y = top + row * call.dilation, x = left + column * call.dilation;
        const bool inside = there && row < call.kernel_height && static_cast<unsigned>(y) < call.height &&
                            static_cast<unsigned>(x) < call.width;
        const std::uint32_t value =
            inside ? reinterpret_cast<const std::uint16_t*>(from)[(y * call.width + x) * call.in + channel] : 0;
        both |= value << 16 * half;
        if (++channel == call.in) {
          channel = 0;
          if (++column == call.kernel_width) column = 0, ++row;
        }
      }
      words[word] = both;
    }
    *reinterpret_cast<uint4*>(to + place_of<kChunks>(mine, chunk)) = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

template <int kDepth, int kN>
__global__ void __launch_bounds__(kPatchThreads) patch_forward_kernel(const __grid_constant__ PatchCall call) {
  using Tile = PatchTile<kDepth, kN>;
  __shared__ __align__(128) unsigned char patches[Tile::kPatchBytes], weights[kDepth * Tile::kColumnBytes];
  __shared__ __align__(128) unsigned char rows[kPatchPixels * Tile::kOutRow];
  if (skipped(call.members, blockIdx.z)) return;
  std::byte* const member = base_of(call.members, blockIdx.z);
  const int first = static_cast<int>(blockIdx.x) * kPatchPixels, slice = static_cast<int>(blockIdx.y) * kN;
  const int size = patch_size(call), thread = static_cast<int>(threadIdx.x);
  const __nv_bfloat16* const from = at<const __nv_bfloat16>(member, call.b) + slice;
  for (int i = thread; i < kDepth * Tile::kOutChunks; i += kPatchThreads) {
    const int row = i / Tile::kOutChunks, chunk = i % Tile::kOutChunks;
    const bool has = row < size;
    copy_chunk(weights + place_of<Tile::kOutChunks>(row, chunk),
               from + std::int64_t{has ? row : 0} * call.channels_out + chunk * 8, has);
  }
  commit();
  gather_patch<kDepth>(call, at<const __nv_bfloat16>(member, call.a), first, patches);
  halo::wait<0>();
  __syncthreads();
  const int lane = attention::lane_of(), warp = thread / kWarp;
  const int low = lane & 7, middle = lane >> 3 & 1, high = lane >> 4, g = lane >> 2, t = lane & 3;
  float c[2][kN / 8][4];
  attention::clear(c);
#pragma unroll
  for (int k = 0; k < kDepth / 16; ++k) {
    unsigned a[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m)
      load_matrices(a[m], patches + place_of<Tile::kChunks>(warp * 32 + m * 16 + low + middle * 8, 2 * k + high));
#pragma unroll
    for (int n = 0; n < kN / 16; ++n) {
      unsigned b[4];
      load_matrices_transposed(b, weights + place_of<Tile::kOutChunks>(k * 16 + low + middle * 8, 2 * n + high));
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        Bf16Unit::mma(c[m][2 * n], a[m], b[0], b[1]);
        Bf16Unit::mma(c[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < kN / 8; ++n) {
      unsigned char* const to = rows + (warp * 32 + m * 16 + g) * Tile::kOutRow + (8 * n + 2 * t) * 2;
      *reinterpret_cast<unsigned*>(to) = attention::pack_pair(c[m][n][0], c[m][n][1]);
      *reinterpret_cast<unsigned*>(to + 8 * Tile::kOutRow) = attention::pack_pair(c[m][n][2], c[m][n][3]);
    }
  }
  __syncthreads();
  __nv_bfloat16* const out = at<__nv_bfloat16>(member, call.out) + slice;
  for (int i = thread; i < kPatchPixels * Tile::kOutChunks; i += kPatchThreads) {
    const int pixel = i / Tile::kOutChunks, chunk = i % Tile::kOutChunks;
    if (first + pixel >= call.pixels) break;
    *reinterpret_cast<uint4*>(out + std::int64_t{first + pixel} * call.channels_out + chunk * 8) =
        *reinterpret_cast<const uint4*>(rows + pixel * Tile::kOutRow + chunk * 16);
  }
}

// Warps share the pixels of a part; their sums are added in order.
template <int kDepth, int kN>
__global__ void __launch_bounds__(kPatchThreads) patch_weights_kernel(const __grid_constant__ PatchCall call) {
  using Tile = PatchTile<kDepth, kN>;
  constexpr int kGradientBytes = kPatchPixels * Tile::kColumnBytes;
  constexpr int kSumBytes = kPatchWarps * kDepth * kN * 4, kStepBytes = Tile::kPatchBytes + kGradientBytes;
  extern __shared__ __align__(128) unsigned char shared[];
  static_assert(kSumBytes <= 64 * 1024 && kStepBytes <= 48 * 1024);
  if (skipped(call.members, blockIdx.z)) return;
  std::byte* const member = base_of(call.members, blockIdx.z);
  const int slice = static_cast<int>(blockIdx.y) * kN, size = patch_size(call);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = attention::lane_of();
  const int low = lane & 7, middle = lane >> 3 & 1, high = lane >> 4, g = lane >> 2, t = lane & 3;
  unsigned char* const gradient = shared + Tile::kPatchBytes;
  const __nv_bfloat16* const from = at<const __nv_bfloat16>(member, call.b) + slice;
  float c[kDepth / 16][kN / 8][4];
  attention::clear(c);
  const int begin = static_cast<int>(blockIdx.x) * call.tiles_per_split;
  for (int tile = begin; tile < begin + call.tiles_per_split; ++tile) {
    const int first = tile * kPatchPixels;
    if (first >= call.pixels) break;
    for (int i = thread; i < kPatchPixels * Tile::kOutChunks; i += kPatchThreads) {
      const int pixel = i / Tile::kOutChunks, chunk = i % Tile::kOutChunks;
      const bool has = first + pixel < call.pixels;
      copy_chunk(gradient + place_of<Tile::kOutChunks>(pixel, chunk),
                 from + std::int64_t{has ? first + pixel : 0} * call.channels_out + chunk * 8, has);
    }
    commit();
    gather_patch<kDepth>(call, at<const __nv_bfloat16>(member, call.a), first, shared);
    halo::wait<0>();
    __syncthreads();
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int group = (warp * 2 + part) * 16;
      unsigned a[kDepth / 16][4];
#pragma unroll
      for (int m = 0; m < kDepth / 16; ++m)
        load_matrices_transposed(a[m], shared + place_of<Tile::kChunks>(group + low + high * 8, 2 * m + middle));
#pragma unroll
      for (int n = 0; n < kN / 16; ++n) {
        unsigned b[4];
        load_matrices_transposed(b, gradient + place_of<Tile::kOutChunks>(group + low + middle * 8, 2 * n + high));
#pragma unroll
        for (int m = 0; m < kDepth / 16; ++m) {
          Bf16Unit::mma(c[m][2 * n], a[m], b[0], b[1]);
          Bf16Unit::mma(c[m][2 * n + 1], a[m], b[2], b[3]);
        }
      }
    }
    __syncthreads();
  }
  float* const sums = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int m = 0; m < kDepth / 16; ++m) {
#pragma unroll
    for (int n = 0; n < kN / 8; ++n) {
      float* const to = sums + (warp * kDepth + m * 16 + g) * kN + 8 * n + 2 * t;
      *reinterpret_cast<float2*>(to) = make_float2(c[m][n][0], c[m][n][1]);
      *reinterpret_cast<float2*>(to + 8 * kN) = make_float2(c[m][n][2], c[m][n][3]);
    }
  }
  __syncthreads();
  float* const out = at<float>(member, call.out) + std::int64_t{blockIdx.x} * size * call.channels_out + slice;
  for (int i = thread; i < size * kN; i += kPatchThreads) {
    float all = sums[i];
#pragma unroll
    for (int other = 1; other < kPatchWarps; ++other) all += sums[other * kDepth * kN + i];
    out[i / kN * call.channels_out + i % kN] = all;
  }
}

template <int kDepth, int kN>
int launch_patches(ConvolutionPass pass, const PatchCall& call, Stream stream) {
  using Tile = PatchTile<kDepth, kN>;
  const auto slices = static_cast<unsigned>(call.channels_out / kN),
             members = static_cast<unsigned>(call.members.count);
  if (pass == ConvolutionPass::forward) {
    patch_forward_kernel<kDepth, kN>
        <<<dim3(blocks_for(call.pixels, kPatchPixels), slices, members), kPatchThreads, 0, stream>>>(call);
    return launched();
  }
  constexpr int kSums = kPatchWarps * kDepth * kN * 4;
  constexpr int kStep = Tile::kPatchBytes + kPatchPixels * Tile::kColumnBytes, kBytes = kSums > kStep ? kSums : kStep;
  if (kBytes > 48 * 1024) {
    const int error =
        cudaFuncSetAttribute(patch_weights_kernel<kDepth, kN>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    if (error != 0) return error;
  }
  patch_weights_kernel<kDepth, kN>
      <<<dim3(static_cast<unsigned>(call.splits), slices, members), kPatchThreads, kBytes, stream>>>(call);
  return launched();
}

template <int kDepth>
int launch_by_columns(ConvolutionPass pass, const PatchCall& call, Stream stream) {
  if (call.channels_out % 64 == 0) return launch_patches<kDepth, 64>(pass, call, stream);
  return call.channels_out % 32 == 0 ? launch_patches<kDepth, 32>(pass, call, stream)
                                     : launch_patches<kDepth, 16>(pass, call, stream);
}

}  // namespace

bool patch_convolution(ConvolutionPass pass, const PatchCall& call) {
  return pass != ConvolutionPass::data && call.in < 8 &&
         call.kernel_height * call.kernel_width * call.in <= kMostPatch && call.channels_out % 16 == 0 &&
         call.channels_out / 16 < (1 << 16);
}

int convolve_patches(ConvolutionPass pass, const PatchCall& call, Stream stream) {
  return call.kernel_height * call.kernel_width * call.in <= 32 ? launch_by_columns<32>(pass, call, stream)
                                                                : launch_by_columns<64>(pass, call, stream);
}

}  // namespace norma::cuda
