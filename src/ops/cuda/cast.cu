// Conversion between f32 and bf16, rounded to nearest, ties to even.
#include "norma/graph/cast_all.h"
#include "norma/ops/views.h"
#include "ops/cuda/map.cuh"
#include "ops/cuda/table.h"

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
  if constexpr (V > 1) {  // as in map.cuh
#pragma unroll 1
    for (std::int64_t i = first; i < call.elements; ++i) cuda::store_one(y + i, cuda::load_one(x + i));
  }
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

namespace {

constexpr std::int64_t kCastPiece = 16384;  // elements of a block

struct CastTensor {
  std::int64_t in, out, elements;
  std::int64_t first;  // of its pieces
};

struct CastAllCall {
  cuda::Members members = {};
  const CastTensor* tensors = nullptr;
  const std::int32_t* tensor_of = nullptr;  // by piece
};

template <typename From, typename To>
__global__ void __launch_bounds__(cuda::kThreads) cast_all_kernel(const __grid_constant__ CastAllCall call) {
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const CastTensor tensor = call.tensors[call.tensor_of[blockIdx.x]];
  const From* const x = cuda::at<const From>(member, tensor.in);
  To* const y = cuda::at<To>(member, tensor.out);
  const std::int64_t begin = (blockIdx.x - tensor.first) * kCastPiece, left = tensor.elements - begin;
  const std::int64_t end = begin + (left < kCastPiece ? left : kCastPiece);
  if ((tensor.in | tensor.out) % 16 == 0 && (end - begin) % kCastWidth == 0) {
#pragma unroll 4
    for (std::int64_t i = begin + threadIdx.x * kCastWidth; i < end; i += cuda::kThreads * kCastWidth) {
      float v[kCastWidth];
      cuda::load<From, kCastWidth>(x + i, v);
      cuda::store<To, kCastWidth>(y + i, v);
    }
    return;
  }
  for (std::int64_t i = begin + threadIdx.x; i < end; i += cuda::kThreads)
    cuda::store_one(y + i, cuda::load_one(x + i));
}

// Where many tensors are, in a table on the device.
template <typename From, typename To>
cuda::Program cast_all_program(Types in) {
  std::vector<CastTensor> tensors;
  std::vector<std::int32_t> tensor_of;
  for (const Type& type : in) {
    const std::int64_t elements = type.shape.elements();
    tensors.push_back({0, 0, elements, static_cast<std::int64_t>(tensor_of.size())});
    tensor_of.insert(tensor_of.end(), static_cast<std::size_t>(cuda::divide_up(elements, kCastPiece)),
                     static_cast<std::int32_t>(tensors.size()) - 1);
  }
  const std::size_t second = cuda::next_in_table<CastTensor>(0, tensors.size());
  const auto pieces = static_cast<unsigned>(tensor_of.size());
  const auto launch = [=](const cuda::Call& call) {
    const CastAllCall told{call.members, reinterpret_cast<const CastTensor*>(call.table),
                           reinterpret_cast<const std::int32_t*>(call.table + second)};
    cast_all_kernel<From, To>
        <<<dim3(pieces, static_cast<unsigned>(call.members.count)), cuda::kThreads, 0, call.stream>>>(told);
    return cuda::launched();
  };
  const auto table = [=](const cuda::Call& call) {
    std::vector<CastTensor> placed = tensors;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      placed[i].in = call.in(static_cast<int>(i));
      placed[i].out = call.out(static_cast<int>(i));
    }
    std::vector<std::byte> bytes;
    cuda::append_to_table(bytes, placed);
    cuda::append_to_table(bytes, tensor_of);
    return bytes;
  };
  return {.launch = launch, .table = table};
}

}  // namespace

cuda::Program cuda_kernel(const CastAll& op, Types in, Types) {
  const std::int64_t elements = in[0].shape.elements();
  if (op.dtype() == DType::f32) {
    return in.size() == 1 ? cast_program<__nv_bfloat16, float>(elements) : cast_all_program<__nv_bfloat16, float>(in);
  }
  return in.size() == 1 ? cast_program<float, __nv_bfloat16>(elements) : cast_all_program<float, __nv_bfloat16>(in);
}

}  // namespace norma
