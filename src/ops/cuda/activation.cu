// y = f(x) and dx = dy f'(x) for relu, gelu (exact), gelu_tanh and silu.
#include "norma/ops/activation.h"

#include "ops/cuda/fold.h"
#include "ops/cuda/map.cuh"

namespace norma {
namespace {

constexpr float kActivationSqrtHalf = 0.70710678118654752440f;
constexpr float kActivationInvSqrt2Pi = 0.39894228040143267794f;
constexpr float kActivationTanhScale = 1.59576912160573071176f;  // 2 sqrt(2/pi)
constexpr float kActivationTanhCubic = 0.044715f;

__device__ __forceinline__ float activation_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

template <Activation F>
__device__ __forceinline__ float activation_value(float x) {
  if constexpr (F == Activation::relu) return x < 0.0f ? 0.0f : x;  // NaN stays
  if constexpr (F == Activation::silu) return x * activation_sigmoid(x);
  if constexpr (F == Activation::gelu) return x * (0.5f * erfcf(-kActivationSqrtHalf * x));
  if constexpr (F == Activation::gelu_tanh) {
    return x * activation_sigmoid(kActivationTanhScale * x * fmaf(kActivationTanhCubic * x, x, 1.0f));
  }
}

// For relu x is the output.
template <Activation F>
__device__ __forceinline__ float activation_slope(float x) {
  if constexpr (F == Activation::relu) return isnan(x) ? x : (x > 0.0f ? 1.0f : 0.0f);
  if constexpr (F == Activation::silu) {
    const float s = activation_sigmoid(x);
    return s * fmaf(x, 1.0f - s, 1.0f);
  }
  if constexpr (F == Activation::gelu) {
    const float cdf = 0.5f * erfcf(-kActivationSqrtHalf * x), gauss = expf(-0.5f * x * x);
    return fmaf(x * kActivationInvSqrt2Pi, gauss, cdf);
  }
  if constexpr (F == Activation::gelu_tanh) {
    const float square = x * x;
    const float u = kActivationTanhScale * x * fmaf(kActivationTanhCubic, square, 1.0f);
    const float du = kActivationTanhScale * fmaf(3.0f * kActivationTanhCubic, square, 1.0f);
    const float s = activation_sigmoid(u);
    return s * fmaf(x * du, 1.0f - s, 1.0f);
  }
}

template <Activation F>
struct ActivationValue {
  template <int V>
  __device__ void operator()(const float (&x)[1][V], float (&y)[V]) const {
#pragma unroll
    for (int j = 0; j < V; ++j) y[j] = activation_value<F>(x[0][j]);
  }
};

template <Activation F>
struct ActivationSlope {
  template <int V>
  __device__ void operator()(const float (&x)[2][V], float (&dx)[V]) const {
#pragma unroll
    for (int j = 0; j < V; ++j) dx[j] = x[1][j] * activation_slope<F>(x[0][j]);
  }
};

template <int kInputs, template <Activation> class F>
cuda::Program activation_program(Activation activation, const Type& type) {
  switch (activation) {
    case Activation::relu: return cuda::map_program<kInputs>(type, F<Activation::relu>{});
    case Activation::gelu: return cuda::map_program<kInputs>(type, F<Activation::gelu>{});
    case Activation::gelu_tanh: return cuda::map_program<kInputs>(type, F<Activation::gelu_tanh>{});
    case Activation::silu: return cuda::map_program<kInputs>(type, F<Activation::silu>{});
    case Activation::none: break;
  }
  return {.launch = [](const cuda::Call&) { return 0; }};  // as on the CPU: nobody applies none
}

struct SlopeSumsCall {
  cuda::Members members = {};
  std::int64_t x = 0, dy = 0, dx = 0;
  std::int64_t sums = 0;  // f32 [parts, width]
  std::int64_t rows = 0, width = 0;
  std::int64_t parts = 1, rows_per_part = 0;
};

constexpr int kSlopeRows = 8;

// A block takes kWarp * V columns and a part of the rows.
template <Activation F, typename T, int V>
__global__ void __launch_bounds__(cuda::kWarp* kSlopeRows)
    slope_sums_kernel(const __grid_constant__ SlopeSumsCall call) {
  __shared__ float shared[kSlopeRows][cuda::kWarp * V];
  if (cuda::skipped(call.members, blockIdx.z)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const std::int64_t column = (std::int64_t{blockIdx.x} * cuda::kWarp + threadIdx.x) * V;
  const std::int64_t begin = blockIdx.y * call.rows_per_part, left = call.rows - begin;
  const std::int64_t end = begin + (left < call.rows_per_part ? left : call.rows_per_part);
  float sum[V] = {};
  if (column < call.width) {
#pragma unroll 4
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kSlopeRows) {
      const std::int64_t at = row * call.width + column;
      float x[V], dy[V];
      cuda::load<T, V>(cuda::at<const T>(member, call.x) + at, x);
      cuda::load<T, V>(cuda::at<const T>(member, call.dy) + at, dy);
#pragma unroll
      for (int j = 0; j < V; ++j) {
        dy[j] *= activation_slope<F>(x[j]);
        sum[j] += dy[j];
      }
      cuda::store<T, V>(cuda::at<T>(member, call.dx) + at, dy);
    }
  }
#pragma unroll
  for (int j = 0; j < V; ++j) shared[threadIdx.y][threadIdx.x * V + j] = sum[j];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.y * cuda::kWarp + threadIdx.x); i < cuda::kWarp * V;
       i += cuda::kWarp * kSlopeRows) {
    const std::int64_t to = std::int64_t{blockIdx.x} * cuda::kWarp * V + i;
    float all = 0.0f;
#pragma unroll
    for (int row = 0; row < kSlopeRows; ++row) all += shared[row][i];
    if (to < call.width) cuda::at<float>(member, call.sums)[blockIdx.y * call.width + to] = all;
  }
}

template <Activation F, typename T>
int slope_sums(const SlopeSumsCall& told, cuda::Stream stream) {
  const auto launch = [&]<int V>() {
    const dim3 grid(cuda::blocks_for(told.width, cuda::kWarp * V), static_cast<unsigned>(told.parts),
                    static_cast<unsigned>(told.members.count));
    slope_sums_kernel<F, T, V><<<grid, dim3(cuda::kWarp, kSlopeRows), 0, stream>>>(told);
    return cuda::launched();
  };
  const bool wide = (told.x | told.dy | told.dx) % 16 == 0 && told.width % cuda::kWide<T> == 0;
  return wide ? launch.template operator()<cuda::kWide<T>>() : launch.template operator()<1>();
}

template <typename T>
auto slope_sums_of(Activation activation) -> int (*)(const SlopeSumsCall&, cuda::Stream) {
  switch (activation) {
    case Activation::relu: return slope_sums<Activation::relu, T>;
    case Activation::gelu: return slope_sums<Activation::gelu, T>;
    case Activation::gelu_tanh: return slope_sums<Activation::gelu_tanh, T>;
    case Activation::silu: return slope_sums<Activation::silu, T>;
    case Activation::none: break;
  }
  return nullptr;  // nobody applies none
}

cuda::Program slope_sums_program(Activation activation, const Type& type) {
  const bool narrow = type.dtype == DType::bf16;
  SlopeSumsCall shape{.rows = type.shape.rows(), .width = type.shape.channels()};
  const std::int64_t vector = narrow ? cuda::kWide<__nv_bfloat16> : cuda::kWide<float>;
  shape.parts = cuda::line_parts(cuda::divide_up(shape.width, cuda::kWarp * (shape.width % vector == 0 ? vector : 1)),
                                 shape.rows);
  shape.rows_per_part = cuda::divide_up(shape.rows, shape.parts);
  const auto run = narrow ? slope_sums_of<__nv_bfloat16>(activation) : slope_sums_of<float>(activation);
  return {.launch =
              [shape, run](const cuda::Call& call) {
                SlopeSumsCall told = shape;
                told.members = call.members;
                told.x = call.in(0);
                told.dy = call.in(1);
                told.dx = call.out(0);
                told.sums = told.parts > 1 ? call.scratch : call.out(1);
                if (const int error = run(told, call.stream); error != 0 || told.parts == 1) return error;
                return cuda::fold_lines({.members = call.members,
                                         .from = call.scratch,
                                         .to = call.out(1),
                                         .lines = told.parts,
                                         .width = told.width},
                                        call.stream);
              },
          .scratch_bytes = shape.parts > 1 ? shape.parts * shape.width * static_cast<std::int64_t>(sizeof(float)) : 0};
}

}  // namespace

cuda::Program cuda_kernel(const ActivationOp& op, Types in, Types) {
  return activation_program<1, ActivationValue>(op.activation(), in[0]);
}

cuda::Program cuda_kernel(const ActivationBackward& op, Types in, Types) {
  if (op.sums()) return slope_sums_program(op.activation(), in[0]);
  return activation_program<2, ActivationSlope>(op.activation(), in[0]);
}

}  // namespace norma
