// Conversion between f32 and bf16, rounded to nearest, ties to even.
#include "norma/ops/views.h"
#include "ops/cuda/map.cuh"

namespace norma {
namespace {

constexpr int kCastWidth = 4;  // elements of an access: 16 bytes of f32

struct CastCall {
  cuda::Members members = {};
  std::int64_t in = 0, out = 0, elements = 0;
};

template <typename From, typename To, int V>
__global__ void __launch_bounds__(cuda::kThreads) cast_kernel(const __grid_constant__ CastCall call) {
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const From* const x = cuda::at<const From>(member, call.in);
  To* const y = cuda::at<To>(member, call.out);
  const std::int64_t first = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
  if (first + V <= call.elements) {
    float v[V];
    cuda::load<From, V>(x + first, v);
    cuda::store<To, V>(y + first, v);
    return;
  }
  for (std::int64_t i = first; i < call.elements; ++i) cuda::store_one(y + i, cuda::load_one(x + i));
}

template <typename From, typename To>
cuda::Program cast_program(std::int64_t elements) {
  return {.launch = [elements](const cuda::Call& call) {
    const CastCall told{call.members, call.in(0), call.out(0), elements};
    const auto grid = [&](int v) {
      return dim3(cuda::blocks_for(elements, cuda::kThreads * v), static_cast<unsigned>(call.members.count));
    };
    if ((told.in | told.out) % 16 == 0) {
      cast_kernel<From, To, kCastWidth><<<grid(kCastWidth), cuda::kThreads, 0, call.stream>>>(told);
    } else {
      cast_kernel<From, To, 1><<<grid(1), cuda::kThreads, 0, call.stream>>>(told);
    }
    return cuda::launched();
  }};
}

template <typename From>
cuda::Program cast_from(DType to, std::int64_t elements) {
  return to == DType::bf16 ? cast_program<From, __nv_bfloat16>(elements) : cast_program<From, float>(elements);
}

}  // namespace

cuda::Program cuda_kernel(const Cast& op, Types in, Types) {
  const std::int64_t elements = in[0].shape.elements();
  return in[0].dtype == DType::bf16 ? cast_from<__nv_bfloat16>(op.dtype(), elements)
                                    : cast_from<float>(op.dtype(), elements);
}

}  // namespace norma
