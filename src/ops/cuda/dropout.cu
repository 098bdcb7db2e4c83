// y = x / (1 - p) where kept, 0 where dropped: the same words of the same random stream as on the CPU.
#include "norma/ops/dropout.h"

#include "device/cuda/device.cuh"
#include "norma/core/names.h"

namespace norma {
namespace {

struct DropoutCall {
  cuda::Members members = {};
  std::int64_t x = 0, p = 0, key = 0, y = 0, elements = 0;
  std::uint64_t site = 0;
};

// SplitMix64's finaliser, and the key of a stream; as core/random.cpp.
__device__ __forceinline__ std::uint64_t dropout_mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Philox4x32-10, as norma/core/random.h.
__device__ __forceinline__ uint4 philox(std::uint64_t block, std::uint64_t step, std::uint64_t stream) {
  uint4 c{static_cast<unsigned>(block), static_cast<unsigned>(block >> 32), static_cast<unsigned>(step),
          static_cast<unsigned>(step >> 32)};
  unsigned k0 = static_cast<unsigned>(stream), k1 = static_cast<unsigned>(stream >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned high0 = __umulhi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
    const unsigned high1 = __umulhi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
    c = uint4{high1 ^ c.y ^ k0, low1, high0 ^ c.w ^ k1, low0};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// A thread takes the four elements of one block of random words.
template <typename T, bool kWhole>
__global__ void __launch_bounds__(cuda::kThreads) dropout_kernel(const __grid_constant__ DropoutCall call) {
  const std::int64_t block = std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x, first = 4 * block;
  if (cuda::skipped(call.members, blockIdx.y) || first >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::uint32_t* const key = cuda::at<const std::uint32_t>(member, call.key);
  const std::uint64_t seed = key[0] | std::uint64_t{key[1]} << 32, step = key[2] | std::uint64_t{key[3]} << 32;
  const float p = *cuda::at<const float>(member, call.p);
  const bool all = p >= 1.0f;
  // A p that is NaN keeps everything, times NaN.
  const std::uint32_t threshold = p > 0.0f && !all ? static_cast<std::uint32_t>(static_cast<double>(p) * 0x1p32) : 0u;
  const float scale = 1.0f / (1.0f - p);
  const uint4 drawn = philox(static_cast<std::uint64_t>(block), step, dropout_mix(dropout_mix(seed) ^ call.site));
  const std::uint32_t words[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
  const T* const x = cuda::at<const T>(member, call.x) + first;
  T* const y = cuda::at<T>(member, call.y) + first;
  float v[4] = {};
  const int count = call.elements - first < 4 ? static_cast<int>(call.elements - first) : 4;
  if (kWhole && count == 4) {
    cuda::load<T, 4>(x, v);
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j) v[j] = j < count ? cuda::load_one(x + j) : 0.0f;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) v[j] = all || words[j] < threshold ? 0.0f : v[j] * scale;
  if (kWhole && count == 4) return cuda::store<T, 4>(y, v);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (j < count) cuda::store_one(y + j, v[j]);
  }
}

template <typename T>
int dropout_launch(const DropoutCall& told, cuda::Stream stream) {
  const dim3 grid(cuda::blocks_for(told.elements, 4 * cuda::kThreads), static_cast<unsigned>(told.members.count));
  if ((told.x | told.y) % 16 == 0) {
    dropout_kernel<T, true><<<grid, cuda::kThreads, 0, stream>>>(told);
  } else {
    dropout_kernel<T, false><<<grid, cuda::kThreads, 0, stream>>>(told);
  }
  return cuda::launched();
}

}  // namespace

cuda::Program cuda_kernel(const Dropout& op, Types in, Types) {
  const DropoutCall shape{.elements = in[0].shape.elements(), .site = hash_name(op.site())};
  return {.launch = [shape, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
    DropoutCall told = shape;
    told.members = call.members;
    told.x = call.in(0);
    told.p = call.in(1);
    told.key = call.in(2);
    told.y = call.out(0);
    return narrow ? dropout_launch<__nv_bfloat16>(told, call.stream) : dropout_launch<float>(told, call.stream);
  }};
}

}  // namespace norma
