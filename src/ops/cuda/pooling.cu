// Max pooling: a thread to an element. What several windows give to one place is added by the thread of the place, in
// the order of windows.
#include "norma/ops/pooling.h"

#include "device/cuda/device.cuh"
#include "ops/pooling_sizes.h"

namespace norma {
namespace {

struct PoolCall {
  cuda::Members members = {};
  std::int64_t from = 0, places = cuda::kAbsent, to = 0;
  std::int64_t batch = 0, height = 0, width = 0, channels = 0, out_height = 0, out_width = 0;
  std::int64_t size = 0, stride = 0, padding = 0;
};

// Image, row, column and channel of the thread's element of images [height, width].
struct PoolPlace {
  std::int64_t index, image, row, column, channel;

  __device__ __forceinline__ PoolPlace(const PoolCall& call, std::int64_t height, std::int64_t width)
      : index(std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) {
    const std::int64_t pixel = cuda::quotient(index, call.channels), line = cuda::quotient(pixel, width);
    image = cuda::quotient(line, height);
    row = line - image * height;
    column = pixel - line * width;
    channel = index - pixel * call.channels;
  }
};

template <class T>
__global__ void __launch_bounds__(cuda::kThreads) max_pool_kernel(const __grid_constant__ PoolCall call) {
  const PoolPlace place(call, call.out_height, call.out_width);
  if (cuda::skipped(call.members, blockIdx.y) || place.image >= call.batch) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const T* const x =
      cuda::at<const T>(member, call.from) + place.image * call.height * call.width * call.channels + place.channel;
  const std::int64_t top = place.row * call.stride - call.padding, left = place.column * call.stride - call.padding;
  std::int64_t best_at = -1;
  float best = 0.0f;
  for (std::int64_t row = top < 0 ? 0 : top; row < top + call.size && row < call.height; ++row) {
    for (std::int64_t column = left < 0 ? 0 : left; column < left + call.size && column < call.width; ++column) {
      const std::int64_t here = row * call.width + column;
      const float value = cuda::load_one(x + here * call.channels);
      if (best_at >= 0 && !(value > best || (isnan(value) && !isnan(best)))) continue;
      best = value;
      best_at = here;
    }
  }
  cuda::store_one(cuda::at<T>(member, call.to) + place.index, best);
  if (call.places >= 0) cuda::at<std::int32_t>(member, call.places)[place.index] = static_cast<std::int32_t>(best_at);
}

template <class T>
__global__ void __launch_bounds__(cuda::kThreads) gather_places_kernel(const __grid_constant__ PoolCall call) {
  const PoolPlace place(call, call.out_height, call.out_width);
  if (cuda::skipped(call.members, blockIdx.y) || place.image >= call.batch) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t pixel =
      place.image * call.height * call.width + cuda::at<const std::int32_t>(member, call.places)[place.index];
  cuda::at<T>(member, call.to)[place.index] =
      cuda::at<const T>(member, call.from)[pixel * call.channels + place.channel];
}

template <class T>
__global__ void __launch_bounds__(cuda::kThreads) scatter_places_kernel(const __grid_constant__ PoolCall call) {
  const PoolPlace place(call, call.height, call.width);
  if (cuda::skipped(call.members, blockIdx.y) || place.image >= call.batch) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const auto own = static_cast<std::int32_t>(place.row * call.width + place.column);
  const std::int64_t down = place.row + call.padding, along = place.column + call.padding;
  // Windows from the first that ends behind the place to the last that begins before it.
  const auto first = [&](std::int64_t at) { return at < call.size ? 0 : (at - call.size) / call.stride + 1; };
  float sum = 0.0f;
  for (std::int64_t i = first(down); i < call.out_height && i * call.stride <= down; ++i) {
    for (std::int64_t j = first(along); j < call.out_width && j * call.stride <= along; ++j) {
      const std::int64_t window =
          ((place.image * call.out_height + i) * call.out_width + j) * call.channels + place.channel;
      if (cuda::at<const std::int32_t>(member, call.places)[window] == own)
        sum += cuda::load_one(cuda::at<const T>(member, call.from) + window);
    }
  }
  cuda::store_one(cuda::at<T>(member, call.to) + place.index, sum);
}

PoolCall pool_call(const PoolingOptions& options, const Shape& image) {
  const PoolingSizes s(options, image);
  return {.batch = s.batch,
          .height = s.height,
          .width = s.width,
          .channels = s.channels,
          .out_height = s.out_height,
          .out_width = s.out_width,
          .size = options.size,
          .stride = options.stride,
          .padding = options.padding};
}

template <class T>
int run_pool(void (*kernel)(PoolCall), const PoolCall& told, std::int64_t elements, cuda::Stream stream) {
  const dim3 grid(cuda::blocks_for(elements, cuda::kThreads), static_cast<unsigned>(told.members.count));
  kernel<<<grid, cuda::kThreads, 0, stream>>>(told);
  return cuda::launched();
}

}  // namespace

cuda::Program cuda_kernel(const MaxPool& op, Types in, Types out) {
  const bool narrow = in[0].dtype == DType::bf16;
  return {.launch = [shape = pool_call(op.options(), in[0].shape), narrow,
                     n = out[0].shape.elements()](const cuda::Call& call) {
    PoolCall told = shape;
    told.members = call.members;
    told.from = call.in(0);
    told.to = call.out(0);
    told.places = call.out(1);
    return narrow ? run_pool<__nv_bfloat16>(max_pool_kernel<__nv_bfloat16>, told, n, call.stream)
                  : run_pool<float>(max_pool_kernel<float>, told, n, call.stream);
  }};
}

cuda::Program cuda_kernel(const Places& op, Types in, Types out) {
  const bool gather = op.way() == Places::Way::gather, narrow = in[0].dtype == DType::bf16;
  const Shape& image = gather ? in[0].shape : out[0].shape;
  return {.launch = [shape = pool_call(op.windows(), image), gather, narrow,
                     n = out[0].shape.elements()](const cuda::Call& call) {
    PoolCall told = shape;
    told.members = call.members;
    told.from = call.in(0);
    told.places = call.in(1);
    told.to = call.out(0);
    if (narrow) {
      return run_pool<__nv_bfloat16>(
          gather ? gather_places_kernel<__nv_bfloat16> : scatter_places_kernel<__nv_bfloat16>, told, n, call.stream);
    }
    return run_pool<float>(gather ? gather_places_kernel<float> : scatter_places_kernel<float>, told, n, call.stream);
  }};
}

}  // namespace norma
