// Activations and their derivatives, one number at a time.
#pragma once

#include <cuda_runtime.h>

#include "norma/ops/activation.h"

namespace norma {

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

}  // namespace norma
