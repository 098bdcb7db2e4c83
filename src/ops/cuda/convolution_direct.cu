#include "ops/cuda/convolution_direct.h"

#include "device/cuda/device.cuh"

namespace norma::cuda {
namespace {

constexpr int kDirectRows = 8;

template <class Out>
__device__ __forceinline__ void put_direct(std::byte* member, std::int64_t out, std::int64_t index, float value) {
  store_one(at<Out>(member, out) + index, value);
}

// y[b, i, j, o]
template <class T, class Out>
__global__ void __launch_bounds__(kThreads) direct_forward_kernel(const __grid_constant__ DirectConvolution call) {
  const std::int64_t index = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t pixel = quotient(index, call.channels_out), o = index - pixel * call.channels_out;
  const std::int64_t line = quotient(pixel, call.out_width), image = quotient(line, call.out_height);
  if (skipped(call.members, blockIdx.y) || image >= call.batch) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const std::int64_t top = (line - image * call.out_height) * call.stride - call.padding;
  const std::int64_t left = (pixel - line * call.out_width) * call.stride - call.padding;
  const std::int64_t first = quotient(o, call.out_group) * call.in_group;
  const T* const x = at<const T>(member, call.a) + image * call.height * call.width * call.in + first;
  const T* weight = at<const T>(member, call.b) + o;
  float sum = 0.0f;
  for (int p = 0; p < call.kernel_height; ++p) {
    for (int q = 0; q < call.kernel_width; ++q, weight += call.in_group * call.channels_out) {
      const std::int64_t y = top + p * call.dilation, column = left + q * call.dilation;
      if (y < 0 || y >= call.height || column < 0 || column >= call.width) continue;
      const T* const seen = x + (y * call.width + column) * call.in;
      for (std::int64_t c = 0; c < call.in_group; ++c)
        sum = fmaf(load_one(seen + c), load_one(weight + c * call.channels_out), sum);
    }
  }
  put_direct<Out>(member, call.out, index, sum);
}

// dx[b, h, w, c]
template <class T, class Out>
__global__ void __launch_bounds__(kThreads) direct_data_kernel(const __grid_constant__ DirectConvolution call) {
  const std::int64_t index = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t pixel = quotient(index, call.in), channel = index - pixel * call.in;
  const std::int64_t line = quotient(pixel, call.width), image = quotient(line, call.height);
  if (skipped(call.members, blockIdx.y) || image >= call.batch) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const std::int64_t down = line - image * call.height + call.padding, along = pixel - line * call.width + call.padding;
  const std::int64_t group = quotient(channel, call.in_group), first = group * call.out_group;
  const T* const dy =
      at<const T>(member, call.a) + image * call.out_height * call.out_width * call.channels_out + first;
  const T* weight = at<const T>(member, call.b) + (channel - group * call.in_group) * call.channels_out + first;
  float sum = 0.0f;
  for (int p = 0; p < call.kernel_height; ++p) {
    for (int q = 0; q < call.kernel_width; ++q, weight += call.in_group * call.channels_out) {
      const std::int64_t y = down - p * call.dilation, x = along - q * call.dilation;
      if (y < 0 || x < 0 || y % call.stride != 0 || x % call.stride != 0) continue;
      const std::int64_t i = y / call.stride, j = x / call.stride;
      if (i >= call.out_height || j >= call.out_width) continue;
      const T* const seen = dy + (i * call.out_width + j) * call.channels_out;
      for (std::int64_t o = 0; o < call.out_group; ++o) sum = fmaf(load_one(seen + o), load_one(weight + o), sum);
    }
  }
  put_direct<Out>(member, call.out, index, sum);
}

// dW[(p, q, c), o], part of its pixels: a block has kWarp o's of one (p, q, c), its warps every kDirectRows-th pixel.
template <class T>
__global__ void __launch_bounds__(kWarp* kDirectRows)
    direct_weights_kernel(const __grid_constant__ DirectConvolution call, const std::int64_t tiles) {
  __shared__ float shared[kDirectRows][kWarp];
  if (skipped(call.members, blockIdx.z)) return;
  std::byte* const member = base_of(call.members, blockIdx.z);
  const std::int64_t row = quotient(blockIdx.x, tiles), o = (blockIdx.x - row * tiles) * kWarp + threadIdx.x;
  const std::int64_t tap = quotient(row, call.in_group), c = row - tap * call.in_group;
  const std::int64_t p = quotient(tap, call.kernel_width), q = tap - p * call.kernel_width;
  const std::int64_t pixels = call.batch * call.out_height * call.out_width;
  const std::int64_t begin = blockIdx.y * call.pixels_per_split;
  const std::int64_t end = begin + call.pixels_per_split < pixels ? begin + call.pixels_per_split : pixels;
  float sum = 0.0f;
  if (o < call.channels_out) {
    const T* const x = at<const T>(member, call.a) + quotient(o, call.out_group) * call.in_group + c;
    const T* const dy = at<const T>(member, call.b) + o;
    for (std::int64_t pixel = begin + threadIdx.y; pixel < end; pixel += kDirectRows) {
      const std::int64_t line = quotient(pixel, call.out_width), image = quotient(line, call.out_height);
      const std::int64_t y = (line - image * call.out_height) * call.stride - call.padding + p * call.dilation;
      const std::int64_t column = (pixel - line * call.out_width) * call.stride - call.padding + q * call.dilation;
      if (y < 0 || y >= call.height || column < 0 || column >= call.width) continue;
      sum = fmaf(load_one(x + ((image * call.height + y) * call.width + column) * call.in),
                 load_one(dy + pixel * call.channels_out), sum);
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || o >= call.channels_out) return;
#pragma unroll
  for (int k = 1; k < kDirectRows; ++k) sum += shared[k][threadIdx.x];
  const std::int64_t rows = call.kernel_height * call.kernel_width * call.in_group;
  at<float>(member, call.out)[(blockIdx.y * rows + row) * call.channels_out + o] = sum;
}

template <class T, class Out>
int direct_images(ConvolutionPass pass, const DirectConvolution& call, Stream stream) {
  const bool forward = pass == ConvolutionPass::forward;
  const std::int64_t elements = forward ? call.batch * call.out_height * call.out_width * call.channels_out
                                        : call.batch * call.height * call.width * call.in;
  const dim3 grid(blocks_for(elements, kThreads), static_cast<unsigned>(call.members.count));
  if (forward) {
    direct_forward_kernel<T, Out><<<grid, kThreads, 0, stream>>>(call);
  } else {
    direct_data_kernel<T, Out><<<grid, kThreads, 0, stream>>>(call);
  }
  return launched();
}

template <class T>
int direct_of(ConvolutionPass pass, const DirectConvolution& call, Stream stream) {
  if (pass != ConvolutionPass::weights) {
    return call.narrow_out ? direct_images<T, __nv_bfloat16>(pass, call, stream)
                           : direct_images<T, float>(pass, call, stream);
  }
  const std::int64_t tiles = divide_up(call.channels_out, kWarp);
  const dim3 grid(static_cast<unsigned>(tiles * call.kernel_height * call.kernel_width * call.in_group),
                  static_cast<unsigned>(call.splits), static_cast<unsigned>(call.members.count));
  direct_weights_kernel<T><<<grid, dim3(kWarp, kDirectRows), 0, stream>>>(call, tiles);
  return launched();
}

}  // namespace

int convolve_directly(ConvolutionPass pass, const DirectConvolution& call, Stream stream) {
  return call.narrow ? direct_of<__nv_bfloat16>(pass, call, stream) : direct_of<float>(pass, call, stream);
}

}  // namespace norma::cuda
