// y = f(x) and dx = dy f'(x) for relu, gelu (exact), gelu_tanh and silu.
#include "norma/ops/activation.h"

#include "ops/cuda/map.cuh"

namespace norma {
namespace {

constexpr float kActivationSqrtHalf = 0.70710678118654752440f;
constexpr float kActivationInvSqrt2Pi = 0.39894228040143267794f;
constexpr float kActivationTanhScale = 1.59576912160573071176f;  // 2 sqrt(2/pi)
constexpr float kActivationTanhCubic = 0.044715f;

// How exact functions are: to f32, or to far more than bf16 holds, which takes a third of the instructions. A pass over
// bf16 is bound by them otherwise.
enum class Exactness { f32, bf16 };

template <Exactness E>
__device__ __forceinline__ float activation_sigmoid(float x) {
  if constexpr (E == Exactness::bf16) return __fdividef(1.0f, 1.0f + __expf(-x));
  return 1.0f / (1.0f + expf(-x));
}

template <Activation F, Exactness E>
__device__ __forceinline__ float activation_value(float x) {
  if constexpr (F == Activation::relu) return x < 0.0f ? 0.0f : x;  // NaN stays
  if constexpr (F == Activation::silu) return x * activation_sigmoid<E>(x);
  if constexpr (F == Activation::gelu) return x * (0.5f * erfcf(-kActivationSqrtHalf * x));
  if constexpr (F == Activation::gelu_tanh) {
    return x * activation_sigmoid<E>(kActivationTanhScale * x * fmaf(kActivationTanhCubic * x, x, 1.0f));
  }
}

// For relu x is the output.
template <Activation F, Exactness E>
__device__ __forceinline__ float activation_slope(float x) {
  if constexpr (F == Activation::relu) return isnan(x) ? x : (x > 0.0f ? 1.0f : 0.0f);
  if constexpr (F == Activation::silu) {
    const float s = activation_sigmoid<E>(x);
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
    const float s = activation_sigmoid<E>(u);
    return s * fmaf(x * du, 1.0f - s, 1.0f);
  }
}

template <Activation F, Exactness E>
struct ActivationValue {
  template <int V>
  __device__ void operator()(const float (&x)[1][V], float (&y)[V]) const {
#pragma unroll
    for (int j = 0; j < V; ++j) y[j] = activation_value<F, E>(x[0][j]);
  }
};

template <Activation F, Exactness E>
struct ActivationSlope {
  template <int V>
  __device__ void operator()(const float (&x)[2][V], float (&dx)[V]) const {
#pragma unroll
    for (int j = 0; j < V; ++j) dx[j] = x[1][j] * activation_slope<F, E>(x[0][j]);
  }
};

template <int kInputs, template <Activation, Exactness> class F, Exactness E>
cuda::Program activation_program_as(Activation activation, const Type& type) {
  switch (activation) {
    case Activation::relu: return cuda::map_program<kInputs>(type, F<Activation::relu, E>{});
    case Activation::gelu: return cuda::map_program<kInputs>(type, F<Activation::gelu, E>{});
    case Activation::gelu_tanh: return cuda::map_program<kInputs>(type, F<Activation::gelu_tanh, E>{});
    case Activation::silu: return cuda::map_program<kInputs>(type, F<Activation::silu, E>{});
    case Activation::none: break;
  }
  return {.launch = [](const cuda::Call&) { return 0; }};  // as on the CPU: nobody applies none
}

template <int kInputs, template <Activation, Exactness> class F>
cuda::Program activation_program(Activation activation, const Type& type) {
  return type.dtype == DType::bf16 ? activation_program_as<kInputs, F, Exactness::bf16>(activation, type)
                                   : activation_program_as<kInputs, F, Exactness::f32>(activation, type);
}

}  // namespace

cuda::Program cuda_kernel(const ActivationOp& op, Types in, Types) {
  return activation_program<1, ActivationValue>(op.activation(), in[0]);
}

cuda::Program cuda_kernel(const ActivationBackward& op, Types in, Types) {
  return activation_program<2, ActivationSlope>(op.activation(), in[0]);
}

}  // namespace norma
