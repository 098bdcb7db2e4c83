// Pixels repeated, a thread to some channels of a large pixel, and what was repeated added up, a thread to some of a
// small one, in the order of rows.
#include "norma/ops/upsample.h"

#include "ops/cuda/map.cuh"

namespace norma {
namespace {

struct UpsampleCall {
  cuda::Members members = {};
  std::int64_t from = 0, to = 0;
  std::int64_t rows = 0, columns = 0, channels = 0, factor = 0;  // of the small images; rows of all
};

// Row, column and channel of the thread's elements of an image with so many columns.
struct UpsamplePlace {
  std::int64_t row, column, channel;

  template <int V>
  __device__ __forceinline__ static UpsamplePlace of(std::int64_t channels, std::int64_t columns) {
    const std::int64_t index = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
    const std::int64_t pixel = cuda::quotient(index, channels), row = cuda::quotient(pixel, columns);
    return {row, pixel - row * columns, index - pixel * channels};
  }
};

template <class T, int V>
__global__ void __launch_bounds__(cuda::kThreads) repeat_pixels_kernel(const __grid_constant__ UpsampleCall call) {
  const std::int64_t wide = call.columns * call.factor;
  const UpsamplePlace to = UpsamplePlace::of<V>(call.channels, wide);
  if (cuda::skipped(call.members, blockIdx.y) || to.row >= call.rows * call.factor) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t row = cuda::quotient(to.row, call.factor), column = cuda::quotient(to.column, call.factor);
  const T* const from = cuda::at<const T>(member, call.from) + (row * call.columns + column) * call.channels;
  T* const out = cuda::at<T>(member, call.to) + (to.row * wide + to.column) * call.channels;
  using Raw = cuda::Raw<T, V>;
  *reinterpret_cast<Raw*>(out + to.channel) = cuda::load_raw<T, V>(from + to.channel);
}

template <class T, int V>
__global__ void __launch_bounds__(cuda::kThreads) gather_pixels_kernel(const __grid_constant__ UpsampleCall call) {
  const UpsamplePlace to = UpsamplePlace::of<V>(call.channels, call.columns);
  if (cuda::skipped(call.members, blockIdx.y) || to.row >= call.rows) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t wide = call.columns * call.factor;
  const T* const from = cuda::at<const T>(member, call.from) + to.channel;
  float sum[V] = {};
  for (std::int64_t i = 0; i < call.factor; ++i) {
    for (std::int64_t j = 0; j < call.factor; ++j) {
      const std::int64_t pixel = (to.row * call.factor + i) * wide + to.column * call.factor + j;
      float values[V];
      cuda::load<T, V>(from + pixel * call.channels, values);
#pragma unroll
      for (int k = 0; k < V; ++k) sum[k] += values[k];
    }
  }
  cuda::store<T, V>(cuda::at<T>(member, call.to) + (to.row * call.columns + to.column) * call.channels + to.channel,
                    sum);
}

template <class T, int V>
int run_upsample(const UpsampleCall& told, bool repeat, cuda::Stream stream) {
  const std::int64_t small = told.rows * told.columns * told.channels;
  const dim3 grid(cuda::blocks_for(repeat ? small * told.factor * told.factor : small, cuda::kThreads * V),
                  static_cast<unsigned>(told.members.count));
  if (repeat) {
    repeat_pixels_kernel<T, V><<<grid, cuda::kThreads, 0, stream>>>(told);
  } else {
    gather_pixels_kernel<T, V><<<grid, cuda::kThreads, 0, stream>>>(told);
  }
  return cuda::launched();
}

template <class T>
int run_upsample_wide(const UpsampleCall& told, bool repeat, cuda::Stream stream) {
  const bool wide = told.channels % cuda::kWide<T> == 0 && (told.from | told.to) % 16 == 0;
  return wide ? run_upsample<T, cuda::kWide<T>>(told, repeat, stream) : run_upsample<T, 1>(told, repeat, stream);
}

}  // namespace

cuda::Program cuda_kernel(const Upsample& op, Types in, Types out) {
  const bool repeat = op.way() == Upsample::Way::repeat;
  const Shape& small = repeat ? in[0].shape : out[0].shape;
  const UpsampleCall shape{
      .rows = small[0] * small[1], .columns = small[2], .channels = small[3], .factor = op.factor()};
  return {.launch = [shape, repeat, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
    UpsampleCall told = shape;
    told.members = call.members;
    told.from = call.in(0), told.to = call.out(0);
    return narrow ? run_upsample_wide<__nv_bfloat16>(told, repeat, call.stream)
                  : run_upsample_wide<float>(told, repeat, call.stream);
  }};
}

}  // namespace norma
