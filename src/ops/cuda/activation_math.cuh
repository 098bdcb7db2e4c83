// Activations and their derivatives, one number at a time.
#pragma once

#include <cuda_runtime.h>

#include "norma/ops/activation.h"

namespace norma {

constexpr float kActivationSqrtHalf = 0.70710678118654752440f;
constexpr float kActivationInvSqrt2Pi = 0.39894228040143267794f;
constexpr float kActivationLog2E = 1.44269504088896340736f;
constexpr float kActivationTanhScale = 1.59576912160573071176f;  // 2 sqrt(2/pi)
constexpr float kActivationTanhCubic = 0.044715f;

// How exact functions are: to f32, or to some 3e-5, of which bf16 keeps a hundredth, in a fifth of the instructions. A
// pass over bf16 is bound by them otherwise.
enum class Exactness { f32, bf16 };

// One instruction each; what is below the normal numbers is zero.
__device__ __forceinline__ float activation_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float activation_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <Exactness E>
__device__ __forceinline__ float activation_sigmoid(float x) {
  if constexpr (E == Exactness::bf16) return activation_reciprocal(1.0f + activation_exp2(-kActivationLog2E * x));
  return 1.0f / (1.0f + expf(-x));
}

// exp(-x^2 / 2), and the share of a standard normal beyond |x|: that times a polynomial of 1 / (1 + 0.38 |x|), fitted
// for the least relative error from 0 to 13 (3.5e-5), beyond which both are zero in f32.
struct GaussianTail {
  float density, share;
};
__device__ __forceinline__ GaussianTail gaussian_tail(float x) {
  const float t = activation_reciprocal(fmaf(0.38f, fabsf(x), 1.0f));
  const float density = activation_exp2(-0.5f * kActivationLog2E * x * x);
  float polynomial = fmaf(-0.08992685f, t, 0.18887320f);
  polynomial = fmaf(polynomial, t, 0.09198224f);
  polynomial = fmaf(polynomial, t, 0.15782869f);
  polynomial = fmaf(polynomial, t, 0.15122522f);
  return {density, density * (polynomial * t)};
}

template <Activation F, Exactness E>
__device__ __forceinline__ float activation_value(float x) {
  if constexpr (F == Activation::relu) return x < 0.0f ? 0.0f : x;  // NaN stays
  if constexpr (F == Activation::silu) return x * activation_sigmoid<E>(x);
  if constexpr (F == Activation::gelu && E == Exactness::bf16) {
    return fmaf(-fabsf(x), gaussian_tail(x).share, fmaxf(x, 0.0f));
  }
  if constexpr (F == Activation::gelu) return x * (0.5f * erfcf(-kActivationSqrtHalf * x));
  if constexpr (F == Activation::gelu_tanh) {
    return x * activation_sigmoid<E>(kActivationTanhScale * x * fmaf(kActivationTanhCubic, x * x, 1.0f));
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
  if constexpr (F == Activation::gelu && E == Exactness::bf16) {
    const GaussianTail tail = gaussian_tail(x);
    return fmaf(x * kActivationInvSqrt2Pi, tail.density, x < 0.0f ? tail.share : 1.0f - tail.share);
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
