// Launches of convolution_im2col_image.cuh and convolution_im2col_weights.cuh.
#pragma once

#include "ops/cuda/convolution_im2col_image.cuh"
#include "ops/cuda/convolution_im2col_weights.cuh"
#include "ops/cuda/hopper_product_launch.cuh"

namespace norma::cuda::im2col {

inline PFN_cuTensorMapEncodeIm2col_v12000 encoder() {
  static const auto found = product::driver_entry<PFN_cuTensorMapEncodeIm2col_v12000>("cuTensorMapEncodeIm2col");
  return found;
}

// How boxes go through images [member, image, y, x, channels]: from pixel to pixel by `stride`, along lines and columns
// that begin `low` before the first pixel and end `high` beyond the last, where the first tap sees them; then to the
// next image, to `more_images` that are not there, which are zeros, and only then to the next member.
struct Path {
  std::int64_t offset = 0;
  int images = 1, height = 1, width = 1, channels = 1;
  int low_x = 0, high_x = 0, low_y = 0, high_y = 0, stride = 1;
  int more_images = 0;
};

inline bool make_path(CUtensorMap& map, const Members& members, const Path& path, int pixels) {
  const auto encode = encoder();
  if (encode == nullptr) return false;
  const auto wide = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const cuuint64_t sizes[] = {wide(path.channels), wide(path.width), wide(path.height), wide(path.images),
                              wide(members.count)};
  const cuuint64_t pixel = sizes[0] * sizeof(Element), line = pixel * sizes[1];
  const cuuint64_t strides[] = {pixel, line, line * sizes[2], wide(members.stride)};
  // Across, down, and from image to image, as sizes are.
  const int lower[] = {-path.low_x, -path.low_y, 0}, upper[] = {path.high_x, path.high_y, path.more_images};
  const auto every = static_cast<cuuint32_t>(path.stride);
  const cuuint32_t steps[] = {1, every, every, 1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 5, members.base + path.offset, sizes, strides, lower, upper,
                kChannels, static_cast<cuuint32_t>(pixels), steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Boxes of 64 x `rows` of weights [member, tap, in, out].
inline bool make_weights(CUtensorMap& map, const Im2colCall& call, int rows) {
  const auto encode = product::map_encoder();
  if (encode == nullptr) return false;
  const auto wide = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const cuuint64_t sizes[] = {wide(call.channels_out), wide(call.in), wide(call.kernel) * wide(call.kernel),
                              wide(call.members.count)};
  const cuuint64_t row = sizes[0] * sizeof(Element), strides[] = {row, row * sizes[1], wide(call.members.stride)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(rows), 1, 1}, every[] = {1, 1, 1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, call.members.base + call.b, sizes, strides, box, every,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Where forward and gradients of weights read the image.
inline Path image_path(const Im2colCall& call) {
  const int before = call.kernel / 2, after = before - (call.kernel - 1);
  Path path{.offset = call.a,
            .images = call.batch,
            .height = call.height,
            .width = call.width,
            .channels = call.in,
            .low_x = before,
            .high_x = after,
            .low_y = before,
            .high_y = after,
            .stride = call.stride};
  if (call.box == Im2colBox::row) {
    path.high_x += kMoreRows;
    path.more_images = 1;  // a box ends kMoreRows beyond: even times 0, another member's NaN would be this one's
  }
  return path;
}

// All taps, or for gradients by the image all from the other side, in the order of their boxes.
inline Window whole_window(int kernel, bool back) {
  Window window{.count = kernel * kernel};
  for (int i = 0; i < window.count; ++i) {
    window.down[i] = static_cast<std::uint8_t>(i / kernel), window.across[i] = static_cast<std::uint8_t>(i % kernel);
    window.tap[i] = static_cast<std::uint8_t>(back ? window.count - 1 - i : i);
  }
  return window;
}

// The taps of stride 2 that pixels of one class see: y + padding - tap is even, and half of it is the line.
inline Window class_window(int kernel, int row, int column) {
  Window window{.row = row, .column = column};
  const int padding = kernel / 2;
  for (int tap = kernel * kernel - 1; tap >= 0; --tap) {
    const int down = row + padding - tap / kernel, across = column + padding - tap % kernel;
    if (down % 2 != 0 || across % 2 != 0) continue;
    window.down[window.count] = static_cast<std::uint8_t>(down / 2);
    window.across[window.count] = static_cast<std::uint8_t>(across / 2);
    window.tap[window.count++] = static_cast<std::uint8_t>(tap);
  }
  return window;
}

inline ImageLaunch forward_launch(const Im2colCall& call, Path& path) {
  path = image_path(call);
  ImageLaunch made{.height = call.out_height, .width = call.out_width, .stride = call.stride};
  made.columns = call.channels_out, made.padding = call.kernel / 2;
  made.windows[0] = whole_window(call.kernel, false);
  return made;
}

inline ImageLaunch back_launch(const Im2colCall& call, Path& path) {
  Im2colCall turned = call;  // stride 1 is forward from the gradient, with taps from the other side
  turned.stride = 1, turned.height = call.out_height, turned.width = call.out_width, turned.in = call.channels_out;
  path = image_path(turned);
  ImageLaunch made{.columns = call.in, .height = call.height, .width = call.width, .step = call.stride};
  made.padding = call.kernel / 2;
  made.windows[0] = whole_window(call.kernel, true);
  if (call.stride == 1) return made;
  made.height /= 2, made.width /= 2, made.padding = 0, made.classes = 4;
  path.low_x = path.low_y = 0;
  path.high_x = made.width - call.out_width, path.high_y = made.height - call.out_height;
  // Those with most taps first, so that blocks end together.
  for (int i = 0; i < 4; ++i) made.windows[i] = class_window(call.kernel, (3 - i) / 2, (3 - i) % 2);
  if (call.kernel == 1) std::swap(made.windows[0], made.windows[3]);
  return made;
}

template <class T>
int launch_image(ImageLaunch made, const Path& path, const Im2colCall& call, Stream stream) {
  made.members = call.members, made.out = call.out;
  made.line = made.width + (T::kTaps > 1 ? kMoreRows : 0);
  made.rows = call.batch * made.height * made.line;
  made.blocks = static_cast<std::int32_t>(divide_up(path.channels, kDepth));
  made.across = static_cast<std::int32_t>(divide_up(made.columns, T::kColumns));
  made.tiles = made.across * static_cast<std::int32_t>(divide_up(made.rows, T::kRows));
  if (!make_path(made.image, call.members, path, T::kBoxRows)) return cudaErrorInvalidValue;
  if (!make_weights(made.weights, call, T::kBack ? T::kColumns : kDepth)) return cudaErrorInvalidValue;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(im2col_image_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, T::kSharedBytes);
  if (allowed != cudaSuccess) return allowed;
  const int each = std::max(1, multiprocessors() / call.members.count);
  const dim3 grid(static_cast<unsigned>(std::min(each, made.tiles * made.classes)),
                  static_cast<unsigned>(call.members.count));
  im2col_image_kernel<T><<<grid, T::kThreads, T::kSharedBytes, stream>>>(made);
  return launched();
}

template <class T>
int launch_weights(const Im2colCall& call, Stream stream) {
  const int taps = call.kernel * call.kernel;
  WeightsLaunch made{.members = call.members, .out = call.out, .in = call.in, .columns = call.channels_out};
  made.kernel = call.kernel, made.stride = call.stride, made.padding = call.kernel / 2;
  made.elements = std::int64_t{taps} * call.in * call.channels_out;
  made.height = call.out_height, made.line = call.out_width + (T::kRow ? kMoreRows : 0);
  made.units = taps * static_cast<std::int32_t>(divide_up(call.in, kChannels));
  made.steps = static_cast<std::int32_t>(std::int64_t{call.batch} * made.height * made.line / kDepth);
  made.steps_per_split = call.steps_per_split;
  made.across = static_cast<std::int32_t>(divide_up(call.channels_out, T::kColumns));
  made.tiles = made.across * static_cast<std::int32_t>(divide_up(made.units, kWeightGroups * T::kUnits));
  if (!make_path(made.image, call.members, image_path(call), T::kBoxRows)) return cudaErrorInvalidValue;
  const Path lines{.offset = call.b,
                   .images = call.batch,
                   .height = call.out_height,
                   .width = call.out_width,
                   .channels = call.channels_out,
                   .high_x = kMoreRows};
  const product::Matrix rows{call.b, std::int64_t{call.batch} * call.out_height * call.out_width, call.channels_out};
  const bool gradient = T::kRow ? make_path(made.gradient, call.members, lines, kDepth)
                                : product::make_map(made.gradient, call.members, rows, kDepth);
  if (!gradient) return cudaErrorInvalidValue;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(im2col_weights_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, T::kSharedBytes);
  if (allowed != cudaSuccess) return allowed;
  const dim3 grid(static_cast<unsigned>(made.tiles * call.splits), static_cast<unsigned>(call.members.count));
  im2col_weights_kernel<T><<<grid, T::kThreads, T::kSharedBytes, stream>>>(made);
  return launched();
}

}  // namespace norma::cuda::im2col
