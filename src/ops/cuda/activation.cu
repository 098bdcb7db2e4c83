// y = f(x) and dx = dy f'(x) for relu, gelu (exact), gelu_tanh and silu.
#include "ops/cuda/activation_math.cuh"
#include "ops/cuda/map.cuh"

namespace norma {
namespace {

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
