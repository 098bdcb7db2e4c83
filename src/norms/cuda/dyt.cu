// DyT: y = gain t + bias, t = tanh(alpha x). With h = dy gain (1 - t^2):
//   dx = alpha h, dalpha = sum of h x, dgain = sum over rows of dy t, dbias = sum over rows of dy
#include "norma/norms/dyt.h"

#include "norms/cuda/lines.cuh"

namespace norma {
namespace {

struct DyTCall {
  cuda::Members members = {};
  std::int64_t x = 0, alpha = 0, y = 0;
  std::int64_t gain = cuda::kAbsent, bias = cuda::kAbsent;
  std::int64_t elements = 0, width = 0;
};

template <int V>
__device__ __forceinline__ void load_channels(const float* from, std::int64_t column, float otherwise, float (&v)[V]) {
  if (from != nullptr) return cuda::load<float, V>(from + column, v);
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = otherwise;
}

template <int V>
__global__ void __launch_bounds__(cuda::kThreads) dyt_kernel(const __grid_constant__ DyTCall call) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
  if (cuda::skipped(call.members, blockIdx.y) || first >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t column = first - cuda::quotient(first, call.width) * call.width;
  const float alpha = *cuda::at<const float>(member, call.alpha);
  float x[V], gain[V], bias[V];
  cuda::load<float, V>(cuda::at<const float>(member, call.x) + first, x);
  load_channels<V>(cuda::at<const float>(member, call.gain), column, 1.0f, gain);
  load_channels<V>(cuda::at<const float>(member, call.bias), column, 0.0f, bias);
#pragma unroll
  for (int j = 0; j < V; ++j) x[j] = fmaf(tanhf(x[j] * alpha), gain[j], bias[j]);
  cuda::store<float, V>(cuda::at<float>(member, call.y) + first, x);
}

struct DyTBackwardCall {
  cuda::Members members = {};
  std::int64_t x = 0, dy = 0, alpha = 0, gain = cuda::kAbsent;
  std::int64_t dx = cuda::kAbsent;
  std::int64_t alphas = 0, gains = 0, biases = 0;  // scratch: [lines, tiles], [lines, width] twice
  cuda::LineLayout layout = {};
};

// dx may lie over x or dy.
__global__ void __launch_bounds__(cuda::kWarp* cuda::kLineRows)
    dyt_backward_kernel(const __grid_constant__ DyTBackwardCall call) {
  __shared__ float shared[cuda::kLineRows][cuda::kWarp];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const cuda::LinePlace place(call.layout);
  const std::int64_t width = call.layout.width;
  const bool has = place.column < width;
  const float alpha = *cuda::at<const float>(member, call.alpha);
  const float* const gains = cuda::at<const float>(member, call.gain);
  const float gain = gains != nullptr && has ? gains[place.column] : 1.0f;
  const float *const xs = cuda::at<const float>(member, call.x), *const dys = cuda::at<const float>(member, call.dy);
  float* const dx = cuda::at<float>(member, call.dx);
  float dalpha = 0.0f, dgain = 0.0f, dbias = 0.0f;
  if (has) {
#pragma unroll 4
    for (std::int64_t row = place.begin + threadIdx.y; row < place.end; row += cuda::kLineRows) {
      const std::int64_t i = row * width + place.column;
      const float x = xs[i], dy = dys[i], t = tanhf(x * alpha), h = dy * fmaf(-t, t, 1.0f) * gain;
      dalpha = fmaf(h, x, dalpha);
      dgain = fmaf(dy, t, dgain);
      dbias += dy;
      if (dx != nullptr) dx[i] = h * alpha;
    }
  }
  dgain = cuda::sum_over_rows(dgain, shared);
  dbias = cuda::sum_over_rows(dbias, shared);
  dalpha = cuda::warp_sum(cuda::sum_over_rows(dalpha, shared));
  if (threadIdx.y != 0) return;
  if (threadIdx.x == 0) cuda::at<float>(member, call.alphas)[blockIdx.x] = dalpha;
  if (!has) return;
  cuda::at<float>(member, call.gains)[place.line * width + place.column] = dgain;
  cuda::at<float>(member, call.biases)[place.line * width + place.column] = dbias;
}

struct DyTOutputs {
  int dgain, dbias;  // -1: none
};

int run_dyt_backward(const cuda::Call& call, DyTBackwardCall told, DyTOutputs outputs) {
  const cuda::LineLayout& layout = told.layout;
  told.members = call.members;
  told.x = call.in(0);
  told.dy = call.in(1);
  told.alpha = call.in(2);
  if (outputs.dgain >= 0) told.gain = call.in(3);
  told.dx = call.out(0);
  told.alphas += call.scratch;
  told.gains += call.scratch;
  told.biases += call.scratch;
  dyt_backward_kernel<<<layout.grid(call.members), cuda::LineLayout::block(), 0, call.stream>>>(told);
  int error = cuda::launched();
  const auto fold = [&](int output, std::int64_t from, std::int64_t lines, std::int64_t width) {
    const std::int64_t to = output < 0 ? cuda::kAbsent : call.out(output);
    if (error != 0 || to < 0) return;
    error = cuda::fold_lines({.members = call.members, .from = from, .to = to, .lines = lines, .width = width},
                             call.stream);
  };
  fold(1, told.alphas, layout.lines() * layout.tiles, 1);
  fold(outputs.dgain, told.gains, layout.lines(), layout.width);
  fold(outputs.dbias, told.biases, layout.lines(), layout.width);
  return error;
}

}  // namespace

cuda::Program cuda_kernel(const DyT& op, Types in, Types) {
  const int gain = has_gain(op.affine()) ? 2 : -1, bias = has_bias(op.affine()) ? 2 + has_gain(op.affine()) : -1;
  const std::int64_t elements = in[0].shape.elements(), width = in[0].shape.channels();
  return {.launch = [gain, bias, elements, width](const cuda::Call& call) {
    const DyTCall told{.members = call.members,
                       .x = call.in(0),
                       .alpha = call.in(1),
                       .y = call.out(0),
                       .gain = gain < 0 ? cuda::kAbsent : call.in(gain),
                       .bias = bias < 0 ? cuda::kAbsent : call.in(bias),
                       .elements = elements,
                       .width = width};
    const auto grid = [&](int v) {
      return dim3(cuda::blocks_for(elements, cuda::kThreads * v), static_cast<unsigned>(call.members.count));
    };
    if (cuda::aligned(16, {told.x, told.y, told.gain, told.bias}) && width % 4 == 0) {
      dyt_kernel<4><<<grid(4), cuda::kThreads, 0, call.stream>>>(told);
    } else {
      dyt_kernel<1><<<grid(1), cuda::kThreads, 0, call.stream>>>(told);
    }
    return cuda::launched();
  }};
}

cuda::Program cuda_kernel(const DyTBackward& op, Types in, Types) {
  const DyTOutputs outputs{has_gain(op.affine()) ? 2 : -1, has_bias(op.affine()) ? 2 + has_gain(op.affine()) : -1};
  cuda::ScratchRoom room;
  DyTBackwardCall shape{.layout = cuda::LineLayout(1, in[0].shape.rows(), in[0].shape.channels())};
  shape.alphas = room.floats(shape.layout.lines() * shape.layout.tiles);
  shape.gains = room.floats(shape.layout.lines() * shape.layout.width);
  shape.biases = room.floats(shape.layout.lines() * shape.layout.width);
  return {.launch = [shape, outputs](const cuda::Call& call) { return run_dyt_backward(call, shape, outputs); },
          .scratch_bytes = room.bytes()};
}

}  // namespace norma
