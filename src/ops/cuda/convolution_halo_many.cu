// Convolutions over slices of 64 channels: gradients of weights, of all taps at once, and images of 64 channels, whose
// weights stay in shared memory while a block goes from part to part.
#include "ops/cuda/convolution_halo.cuh"
#include "ops/cuda/multiprocessors.cuh"

namespace norma::cuda::halo {
namespace {

using attention::Bf16Unit;
using attention::load_matrices;
using attention::load_matrices_transposed;

constexpr int kThreads = 256, kSlice = kHaloSlice, kChunks = kSlice / 8, kPixelBytes = kSlice * 2;
constexpr int kWeightBytes = kTaps * kSlice * kPixelBytes;  // of one slice by one slice
constexpr int kOutRow = kPixelBytes + 16;                   // bytes of a pixel on its way out

// Parts of kHaloPixels pixels: rows of one image, or several whole images, each with a border of its own.
struct Parts {
  int rows, images, line, bits;  // line: pixels of a row in shared memory; bits of the width

  __host__ __device__ __forceinline__ explicit Parts(const HaloCall& call) {
    const int pixels = call.height * call.width;
    images = pixels < kHaloPixels ? kHaloPixels / pixels : 1;
    rows = images > 1 ? call.height : kHaloPixels / call.width;
    line = call.width + 2;
    bits = 0;
    while (1 << bits < call.width) ++bits;
  }
  __host__ __device__ __forceinline__ int pixels_of_image() const { return (rows + 2) * line; }
  __host__ __device__ __forceinline__ int bytes() const { return images * pixels_of_image() * kPixelBytes; }
  // Where the first tap of a pixel of the part lies.
  __device__ __forceinline__ int corner(int pixel) const {
    const int whole = rows << bits, image = pixel / whole, within = pixel - image * whole;
    return image * pixels_of_image() + within + 2 * (within >> bits);
  }
};

// The columns beside every image, which no copy touches.
__device__ __forceinline__ void clear_sides(const Parts& parts, unsigned char* to) {
  for (int i = static_cast<int>(threadIdx.x); i < parts.images * (parts.rows + 2) * 2 * kChunks; i += kThreads) {
    const int row = i / (2 * kChunks), side = i / kChunks % 2, chunk = i % kChunks;
    *reinterpret_cast<uint4*>(to + place_of<kChunks>(row * parts.line + side * (parts.line - 1), chunk)) =
        make_uint4(0, 0, 0, 0);
  }
}

// Part `index` of images of so many channels, of which it takes a slice from `from` on; zeros above and below.
__device__ __forceinline__ void bring_part(const HaloCall& call, const Parts& parts, int index, int channels,
                                           const __nv_bfloat16* from, unsigned char* to) {
  const int parts_of_image = parts.images > 1 ? 1 : call.height / parts.rows;
  const int first_image = parts.images > 1 ? index * parts.images : index / parts_of_image;
  const int first_row = parts.images > 1 ? 0 : (index - first_image * parts_of_image) * parts.rows;
  const int chunks = ((parts.rows + 2) << parts.bits) * kChunks;
  for (int image = 0; image < parts.images; ++image) {
    const std::int64_t top = std::int64_t{first_image + image} * call.height;
    const int shift = image * parts.pixels_of_image();
    for (int i = static_cast<int>(threadIdx.x); i < chunks; i += kThreads) {
      const int pixel = i / kChunks, chunk = i % kChunks, row = pixel >> parts.bits;
      const int column = pixel - (row << parts.bits), y = first_row + row - 1;
      const bool inside = y >= 0 && y < call.height;
      const std::int64_t place = (top + (inside ? y : 0)) * call.width + column;
      const int number = shift + row * parts.line + 1 + column;
      copy_chunk(to + place_of<kChunks>(number, chunk), from + place * channels + chunk * 8, inside);
    }
  }
}

// Rows of a slice, `stride` elements apart.
__device__ __forceinline__ void bring_slice(const __nv_bfloat16* from, int rows, int stride, unsigned char* to) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * kChunks; i += kThreads) {
    const int row = i / kChunks, chunk = i % kChunks;
    copy_chunk(to + place_of<kChunks>(row, chunk), from + std::int64_t{row} * stride + chunk * 8, true);
  }
}

// A warp has 16 channels of the image and 32 of the gradient, all taps: chunks from which its lanes read.
struct WeightsPlace {
  int low, middle, high, in_chunk, out_chunk;

  __device__ __forceinline__ explicit WeightsPlace(int warp) {
    const int lane = attention::lane_of();
    low = lane & 7, middle = lane >> 3 & 1, high = lane >> 4;
    in_chunk = warp % 4 * 2 + middle, out_chunk = warp / 4 * 4 + high;
  }
};

using WeightSums = float[kTaps][4][4];

__device__ __forceinline__ void load_gradient(unsigned (&b)[2][4], const unsigned char* gradient, int row,
                                              const WeightsPlace& at) {
#pragma unroll
  for (int n = 0; n < 2; ++n)
    load_matrices_transposed(b[n], gradient + place_of<kChunks>(row + at.low + at.middle * 8, at.out_chunk + 2 * n));
}

__device__ __forceinline__ void add_products(float (&c)[4][4], const unsigned (&a)[4], const unsigned (&b)[2][4]) {
#pragma unroll
  for (int n = 0; n < 4; ++n) Bf16Unit::mma(c[n], a, b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
}

// 16 pixels at a time, each tap read by itself.
__device__ __forceinline__ void add_by_pixels(WeightSums& c, const Parts& parts, const unsigned char* image,
                                              const unsigned char* gradient, const WeightsPlace& at) {
#pragma unroll 1
  for (int group = 0; group < kGroups; ++group) {
    const int corner = parts.corner(group * 16 + at.low + at.high * 8);
    unsigned a[2][4], b[2][4];
    load_matrices_transposed(a[0], image + place_of<kChunks>(corner, at.in_chunk));
    load_gradient(b, gradient, group * 16, at);
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      if (tap + 1 < kTaps) {
        const int next = corner + (tap + 1) / 3 * parts.line + (tap + 1) % 3;
        load_matrices_transposed(a[(tap + 1) % 2], image + place_of<kChunks>(next, at.in_chunk));
      }
      add_products(c[tap], a[tap % 2], b);
    }
  }
}

// 16 columns at a time, row by row of the image with its border: a row is read once for each of three taps beside each
// other, and meets the rows of the gradient above, at and below it, which are kept.
__device__ __forceinline__ void add_by_rows(WeightSums& c, const Parts& parts, const unsigned char* image,
                                            const unsigned char* gradient, const WeightsPlace& at) {
  const int width = 1 << parts.bits;
#pragma unroll 1
  for (int column = 0; column < width; column += 16) {
    unsigned b[3][2][4];
#pragma unroll 1
    for (int first = 0; first < parts.rows + 2; first += 3) {
#pragma unroll
      for (int turn = 0; turn < 3; ++turn) {
        const int row = first + turn;
        if (row >= parts.rows + 2) break;
        if (row < parts.rows) load_gradient(b[turn], gradient, (row << parts.bits) + column, at);
        const int corner = row * parts.line + column + at.low + at.high * 8;
#pragma unroll
        for (int across = 0; across < 3; ++across) {
          unsigned a[4];
          load_matrices_transposed(a, image + place_of<kChunks>(corner + across, at.in_chunk));
#pragma unroll
          for (int down = 0; down < 3; ++down) {
            if (row - down >= 0 && row - down < parts.rows)
              add_products(c[down * 3 + across], a, b[(turn + 3 - down) % 3]);
          }
        }
      }
    }
  }
}

template <bool kByRows>
__global__ void __launch_bounds__(kThreads, 1) many_weights_kernel(const __grid_constant__ HaloCall call) {
  extern __shared__ __align__(128) unsigned char shared[];
  if (skipped(call.members, blockIdx.y)) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const Parts parts(call);
  const int slices_in = call.in / kSlice, pairs = slices_in * (call.channels_out / kSlice);
  const int split = static_cast<int>(blockIdx.x) / pairs, pair = static_cast<int>(blockIdx.x) - split * pairs;
  const int slice_out = pair / slices_in, slice_in = pair - slice_out * slices_in;
  const __nv_bfloat16* const image = at<const __nv_bfloat16>(member, call.a) + slice_in * kSlice;
  const __nv_bfloat16* const gradient = at<const __nv_bfloat16>(member, call.b) + slice_out * kSlice;
  const int begin = split * call.tiles_per_split;
  const int all = static_cast<int>(std::int64_t{call.batch} * call.height * call.width / kHaloPixels);
  const int end = min(begin + call.tiles_per_split, all);
  const int image_bytes = parts.bytes(), stage_bytes = image_bytes + kHaloPixels * kPixelBytes;
  const auto bring = [&](int index) {
    if (index < end) {
      unsigned char* const to = shared + (index - begin) % 2 * stage_bytes;
      bring_part(call, parts, index, call.in, image, to);
      bring_slice(gradient + std::int64_t{index} * kHaloPixels * call.channels_out, kHaloPixels, call.channels_out,
                  to + image_bytes);
    }
    commit();
  };
  for (int stage = 0; stage < 2; ++stage) clear_sides(parts, shared + stage * stage_bytes);
  const int lane = attention::lane_of(), warp = static_cast<int>(threadIdx.x) / kWarp;
  const WeightsPlace place(warp);
  WeightSums c;
  attention::clear(c);
  bring(begin);
  for (int index = begin; index < end; ++index) {
    bring(index + 1);
    wait<1>();
    __syncthreads();
    const unsigned char* const tile = shared + (index - begin) % 2 * stage_bytes;
    if constexpr (kByRows) {
      add_by_rows(c, parts, tile, tile + image_bytes, place);
    } else {
      add_by_pixels(c, parts, tile, tile + image_bytes, place);
    }
    __syncthreads();  // the next but one overwrites what was read
  }
  wait<0>();
  const int g = lane >> 2, t = lane & 3;
  float* const out = at<float>(member, call.out) + std::int64_t{split} * kTaps * call.in * call.channels_out;
  const int first_in = slice_in * kSlice + warp % 4 * 16 + g, first_out = slice_out * kSlice + warp / 4 * 32 + 2 * t;
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    float* const to = out + (std::int64_t{tap} * call.in + first_in) * call.channels_out + first_out;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      *reinterpret_cast<float2*>(to + 8 * n) = make_float2(c[tap][n][0], c[tap][n][1]);
      *reinterpret_cast<float2*>(to + 8 * call.channels_out + 8 * n) = make_float2(c[tap][n][2], c[tap][n][3]);
    }
  }
}

// Forward, and by the image (kBack), of 64 channels. A warp has 64 pixels and 32 of the channels that are written.
template <bool kBack>
__global__ void __launch_bounds__(kThreads, 1) many_image_kernel(const __grid_constant__ HaloCall call) {
  extern __shared__ __align__(128) unsigned char shared[];
  if (skipped(call.members, blockIdx.y)) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const Parts parts(call);
  const int all = static_cast<int>(std::int64_t{call.batch} * call.height * call.width / kHaloPixels);
  const int stage_bytes = max(parts.bytes(), kHaloPixels * kOutRow), step = static_cast<int>(gridDim.x);
  unsigned char* const weights = shared + 2 * stage_bytes;
  const __nv_bfloat16* const image = at<const __nv_bfloat16>(member, call.a);
  const auto bring = [&](int index, int stage) {
    if (index < all) bring_part(call, parts, index, kSlice, image, shared + stage * stage_bytes);
    commit();
  };
  bring_slice(at<const __nv_bfloat16>(member, call.b), kTaps * kSlice, kSlice, weights);
  const int lane = attention::lane_of(), warp = static_cast<int>(threadIdx.x) / kWarp;
  const int low = lane & 7, middle = lane >> 3 & 1, high = lane >> 4, g = lane >> 2, t = lane & 3;
  const int first_group = warp / 2 * 4, half = warp % 2;
  int corner[4];
#pragma unroll
  for (int m = 0; m < 4; ++m) corner[m] = parts.corner((first_group + m) * 16 + low + middle * 8);
  int index = static_cast<int>(blockIdx.x), stage = 0;
  bring(index, 0);
  for (; index < all; index += step, stage ^= 1) {
    unsigned char* const tile = shared + stage * stage_bytes;
    clear_sides(parts, tile);  // what went out by here lay over them
    bring(index + step, stage ^ 1);
    wait<1>();
    __syncthreads();
    float c[4][4][4];
    attention::clear(c);
#pragma unroll 1
    for (int tap = 0; tap < kTaps; ++tap) {
      const int row = tap / 3, column = tap - row * 3;
      const int moved = kBack ? (2 - row) * parts.line + 2 - column : row * parts.line + column;
#pragma unroll
      for (int k = 0; k < kSlice / 16; ++k) {
        unsigned b[2][4], a[4][4];
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          if constexpr (kBack) {
            const int from = tap * kSlice + half * 32 + n * 16 + low + high * 8;
            load_matrices(b[n], weights + place_of<kChunks>(from, 2 * k + middle));
          } else {
            const int from = tap * kSlice + k * 16 + low + middle * 8;
            load_matrices_transposed(b[n], weights + place_of<kChunks>(from, half * 4 + 2 * n + high));
          }
        }
#pragma unroll
        for (int m = 0; m < 4; ++m) load_matrices(a[m], tile + place_of<kChunks>(corner[m] + moved, 2 * k + high));
#pragma unroll
        for (int m = 0; m < 4; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) Bf16Unit::mma(c[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
        }
      }
    }
    __syncthreads();  // nobody reads the part any more
#pragma unroll
    for (int m = 0; m < 4; ++m) {
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        unsigned char* const to = tile + ((first_group + m) * 16 + g) * kOutRow + (half * 32 + 8 * n + 2 * t) * 2;
        *reinterpret_cast<unsigned*>(to) = attention::pack_pair(c[m][n][0], c[m][n][1]);
        *reinterpret_cast<unsigned*>(to + 8 * kOutRow) = attention::pack_pair(c[m][n][2], c[m][n][3]);
      }
    }
    __syncthreads();
    __nv_bfloat16* const out = at<__nv_bfloat16>(member, call.out) + std::int64_t{index} * kHaloPixels * kSlice;
    for (int i = static_cast<int>(threadIdx.x); i < kHaloPixels * kChunks; i += kThreads) {
      *reinterpret_cast<uint4*>(out + i * 8) =
          *reinterpret_cast<const uint4*>(tile + i / kChunks * kOutRow + i % kChunks * 16);
    }
    __syncthreads();  // before the next part but one comes here
  }
  wait<0>();
}

int shared_bytes(ConvolutionPass pass, const HaloCall& call) {
  const int part = Parts(call).bytes(), out = kHaloPixels * kOutRow;
  if (pass == ConvolutionPass::weights) return 2 * (part + kHaloPixels * kPixelBytes);
  return 2 * (part > out ? part : out) + kWeightBytes;
}

}  // namespace

bool many_fit(ConvolutionPass pass, const HaloCall& call) {
  int device = 0, most = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess &&
         shared_bytes(pass, call) <= most;
}

int convolve_many(ConvolutionPass pass, const HaloCall& call, Stream stream) {
  const int bytes = shared_bytes(pass, call), pairs = call.in / kSlice * (call.channels_out / kSlice);
  if (pass == ConvolutionPass::weights) {
    return launch(call.width >= 16 ? many_weights_kernel<true> : many_weights_kernel<false>, call, call.splits * pairs,
                  kThreads, bytes, stream);
  }
  const int parts = halo_parts(call), blocks = parts < multiprocessors() ? parts : multiprocessors();
  return launch(pass == ConvolutionPass::data ? many_image_kernel<true> : many_image_kernel<false>, call, blocks,
                kThreads, bytes, stream);
}

}  // namespace norma::cuda::halo
