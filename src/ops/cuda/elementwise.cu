// y = f(x) and z = a (.) b with broadcasting, and repetition.
#include "norma/ops/elementwise.h"

#include "norma/ops/reduce.h"
#include "ops/cuda/walk.cuh"

namespace norma {
namespace {

struct UnaryFunction {
  Unary function;

  template <Unary F>
  __device__ static float value(float x) {
    if constexpr (F == Unary::neg) return -x;
    if constexpr (F == Unary::exp) return expf(x);
    if constexpr (F == Unary::log) return logf(x);
    if constexpr (F == Unary::sqrt) return sqrtf(x);
    if constexpr (F == Unary::rsqrt) return 1.0f / sqrtf(x);
    if constexpr (F == Unary::reciprocal) return 1.0f / x;
    if constexpr (F == Unary::square) return x * x;
    if constexpr (F == Unary::tanh) return tanhf(x);
    if constexpr (F == Unary::erf) return erff(x);
    if constexpr (F == Unary::sigmoid) return 1.0f / (1.0f + expf(-x));
    if constexpr (F == Unary::step) return isnan(x) ? x : (x > 0.0f ? 1.0f : 0.0f);
    if constexpr (F == Unary::sin) return sinf(x);
    if constexpr (F == Unary::cos) return cosf(x);
  }
  template <Unary F, int V>
  __device__ static void row(const float (&x)[1][V], float (&y)[V]) {
#pragma unroll
    for (int j = 0; j < V; ++j) y[j] = value<F>(x[0][j]);
  }
  template <int V>
  __device__ void operator()(const float (&x)[1][V], float (&y)[V]) const {
    switch (function) {
      case Unary::neg: return row<Unary::neg>(x, y);
      case Unary::exp: return row<Unary::exp>(x, y);
      case Unary::log: return row<Unary::log>(x, y);
      case Unary::sqrt: return row<Unary::sqrt>(x, y);
      case Unary::rsqrt: return row<Unary::rsqrt>(x, y);
      case Unary::reciprocal: return row<Unary::reciprocal>(x, y);
      case Unary::square: return row<Unary::square>(x, y);
      case Unary::tanh: return row<Unary::tanh>(x, y);
      case Unary::erf: return row<Unary::erf>(x, y);
      case Unary::sigmoid: return row<Unary::sigmoid>(x, y);
      case Unary::step: return row<Unary::step>(x, y);
      case Unary::sin: return row<Unary::sin>(x, y);
      case Unary::cos: return row<Unary::cos>(x, y);
    }
  }
};

struct BinaryFunction {
  Binary function;

  template <int V>
  __device__ void operator()(const float (&x)[2][V], float (&z)[V]) const {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float a = x[0][j], b = x[1][j];
      z[j] = function == Binary::add   ? a + b
             : function == Binary::sub ? a - b
             : function == Binary::mul ? a * b
                                       : a / b;
    }
  }
};

struct Repeat {
  template <int V>
  __device__ void operator()(const float (&x)[1][V], float (&y)[V]) const {
#pragma unroll
    for (int j = 0; j < V; ++j) y[j] = x[0][j];
  }
};

}  // namespace

cuda::Program cuda_kernel(const UnaryOp& op, Types in, Types) {
  return cuda::map_program<1>(in[0], UnaryFunction{op.function()});
}

cuda::Program cuda_kernel(const BinaryOp& op, Types in, Types out) {
  return cuda::walk_program(out[0].dtype, cuda::walk_of<2>(out[0].shape, {in[0].shape, in[1].shape}),
                            BinaryFunction{op.function()});
}

cuda::Program cuda_kernel(const BroadcastTo&, Types in, Types out) {
  return cuda::walk_program(out[0].dtype, cuda::walk_of<1>(out[0].shape, {in[0].shape}), Repeat{});
}

}  // namespace norma
