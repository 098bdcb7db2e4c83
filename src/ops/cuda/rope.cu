// (a, b) -> (a cos - b sin, a sin + b cos) for each pair of channels, with the angles of the CPU.
#include "norma/ops/rope.h"

#include <cmath>

#include "device/cuda/device.cuh"
#include "ops/cuda/copy.h"
#include "ops/cuda/table.h"
#include "ops/rope_sizes.h"

namespace norma {
namespace {

constexpr int kRopePairs = 4;  // of a thread, where the head divides by it

struct RopeCall {
  cuda::Members members = {};
  std::int64_t x = 0, y = 0;
  const float* angles = nullptr;  // [time, 2, half]: cosines, sines
  std::int64_t pairs = 0;         // of all rows
  RopeSizes sizes = {};
};

// y may lie over x: both numbers of a pair are read and written by one thread.
template <typename T, int V, RopePairs kPairs>
__global__ void __launch_bounds__(cuda::kThreads) rope_kernel(const __grid_constant__ RopeCall call) {
  const std::int64_t pair = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
  if (cuda::skipped(call.members, blockIdx.y) || pair >= call.pairs) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const RopeSizes& s = call.sizes;
  const std::int64_t half = s.width / 2, head = cuda::quotient(pair, half), i = pair - head * half;
  const std::int64_t heads = s.rotated / s.width, row = cuda::quotient(head, heads);
  const std::int64_t time = row - cuda::quotient(row, s.time) * s.time;
  const std::int64_t first = row * s.channels + (head - row * heads) * s.width;
  const T* const x = cuda::at<const T>(member, call.x) + first;
  T* const y = cuda::at<T>(member, call.y) + first;
  float cosine[V], sine[V];
  cuda::load<float, V>(call.angles + time * s.width + i, cosine);
  cuda::load<float, V>(call.angles + time * s.width + half + i, sine);
  if constexpr (kPairs == RopePairs::half_split) {
    float a[V], b[V];
    cuda::load<T, V>(x + i, a);
    cuda::load<T, V>(x + half + i, b);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float turned = fmaf(-b[j], sine[j], a[j] * cosine[j]);
      b[j] = fmaf(a[j], sine[j], b[j] * cosine[j]);
      a[j] = turned;
    }
    cuda::store<T, V>(y + i, a);
    cuda::store<T, V>(y + half + i, b);
  } else {
    float v[2][V];
#pragma unroll
    for (int k = 0; k < 2; ++k) cuda::load<T, V>(x + 2 * i + k * V, v[k]);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      float &a = v[2 * j / V][2 * j % V], &b = v[(2 * j + 1) / V][(2 * j + 1) % V];
      const float turned = fmaf(-b, sine[j], a * cosine[j]);
      b = fmaf(a, sine[j], b * cosine[j]);
      a = turned;
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) cuda::store<T, V>(y + 2 * i + k * V, v[k]);
  }
}

template <typename T, int V>
int rope_launch(const RopeCall& told, RopePairs pairs, cuda::Stream stream) {
  const dim3 grid(cuda::blocks_for(told.pairs, cuda::kThreads * V), static_cast<unsigned>(told.members.count));
  if (pairs == RopePairs::half_split) {
    rope_kernel<T, V, RopePairs::half_split><<<grid, cuda::kThreads, 0, stream>>>(told);
  } else {
    rope_kernel<T, V, RopePairs::interleaved><<<grid, cuda::kThreads, 0, stream>>>(told);
  }
  return cuda::launched();
}

// As on the CPU, to the last bit.
std::vector<std::byte> rope_angles(const RopeSizes& s, double theta, Rope::Direction direction) {
  const std::int64_t half = s.width / 2;
  std::vector<float> angles(static_cast<std::size_t>(s.time * s.width));
  for (std::int64_t t = 0; t < s.time; ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(s.width));
      const double angle = static_cast<double>(t) * frequency, sine = std::sin(angle);
      float* const cosine = angles.data() + t * s.width + i;
      cosine[0] = static_cast<float>(std::cos(angle));
      cosine[half] = static_cast<float>(direction == Rope::Direction::forward ? sine : -sine);
    }
  }
  std::vector<std::byte> table;
  cuda::append_to_table(table, angles);
  return table;
}

// Channels that are not turned.
int copy_rest(const cuda::Call& call, const RopeSizes& s, std::int64_t rows, std::int64_t element) {
  if (s.rotated == s.channels || call.in(0) == call.out(0)) return 0;
  return cuda::copy_rows({.members = call.members,
                          .rows = rows,
                          .bytes = (s.channels - s.rotated) * element,
                          .in = call.in(0) + s.rotated * element,
                          .in_stride = s.channels * element,
                          .out = call.out(0) + s.rotated * element,
                          .out_stride = s.channels * element},
                         call.stream);
}

template <typename T>
int rope(const cuda::Call& call, const RopeSizes& s, std::int64_t rows, RopePairs pairs) {
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(T));
  if (const int error = copy_rest(call, s, rows, kElement); error != 0) return error;
  const RopeCall told{call.members,         call.in(0), call.out(0), reinterpret_cast<const float*>(call.table),
                      rows * s.rotated / 2, s};
  const bool wide = (told.x | told.y) % 16 == 0 && s.width % (2 * kRopePairs) == 0 && s.channels % kRopePairs == 0;
  return wide ? rope_launch<T, kRopePairs>(told, pairs, call.stream) : rope_launch<T, 1>(told, pairs, call.stream);
}

}  // namespace

cuda::Program cuda_kernel(const Rope& op, Types in, Types) {
  const RopeSizes s = rope_sizes(op.options(), in[0].shape);
  const std::int64_t rows = in[0].shape.elements() / s.channels;
  const RopePairs pairs = op.options().pairs;
  return {.launch =
              [s, rows, pairs, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
                return narrow ? rope<__nv_bfloat16>(call, s, rows, pairs) : rope<float>(call, s, rows, pairs);
              },
          .table = [s, theta = op.options().theta,
                    direction = op.direction()](const cuda::Call&) { return rope_angles(s, theta, direction); }};
}

}  // namespace norma
