// Attention of short sequences, and which kernels serve a call; see attention_hopper.h.
#include "ops/cuda/attention_hopper.h"

#ifdef NORMA_SM90A
#include "ops/cuda/attention_hopper_whole_backward.cuh"
#include "ops/cuda/attention_hopper_whole_few.cuh"
#include "ops/cuda/attention_hopper_whole_forward.cuh"
#include "ops/cuda/attention_hopper_whole_gradients.cuh"
#include "ops/cuda/attention_whole.cuh"
#include "ops/cuda/multiprocessors.cuh"
#endif

namespace norma::cuda {

#ifdef NORMA_SM90A

namespace attention {
namespace {

template <class Run>
int with_whole(const AttentionCall& call, const Run& run) {
  const bool two = std::max(call.queries, call.keys) > kSide;
  const auto tiles = [&]<int kWidth>() {
    return two ? run.template operator()<kWidth, 2>() : run.template operator()<kWidth, 1>();
  };
  if (call.width <= 16) return tiles.template operator()<16>();
  if (call.width <= 32) return tiles.template operator()<32>();
  return tiles.template operator()<64>();
}

// Careful ways take twice as many rows as threads have at a time, tiles of 32 and two buffers.
constexpr std::int64_t careful_bytes(int width, int rows = kSide) {
  return (2 * rows + 128) * stride_of<HopperTile>(width) * 2 + 4 * 32 * 4;
}

// Whether heads are so few that each of their tiles should have a warpgroup.
bool has_few_heads(const AttentionCall& call) {
  return std::int64_t{call.batch} * call.heads * call.members.count <= 2 * std::int64_t{multiprocessors()};
}

template <int kWidth, int kTiles, int kParts>
int launch_whole_forward_as(const AttentionCall& call, Stream stream) {
  const std::int64_t shared = std::max<std::int64_t>(3 * kTiles * kTileBytes + 1024, careful_bytes(kWidth));
  return launch_kernel(hopper_whole_forward_kernel<Bf16Math, kWidth, kTiles, kParts>,
                       kParts * std::int64_t{call.batch} * call.heads, kGroup, shared, call, Access::chunks, stream);
}

template <int kWidth, int kTiles, int kParts>
int launch_whole_backward_as(const AttentionCall& call, Stream stream) {
  const std::int64_t shared =
      std::max<std::int64_t>(4 * kTiles * kTileBytes + 1024 + 2 * kTiles * kSide * 4, careful_bytes(kWidth));
  return launch_kernel(hopper_whole_backward_kernel<Bf16Math, kWidth, kTiles, kParts>,
                       kParts * std::int64_t{call.batch} * call.heads, kGroup, shared, call, Access::chunks, stream);
}

template <int kWidth, int kTiles>
int launch_whole_gradients(const AttentionCall& call, Stream stream) {
  const std::int64_t shared = std::max(whole_gradients_bytes<kTiles>(), careful_bytes(kWidth));
  return launch_kernel(hopper_whole_gradients_kernel<Bf16Math, kWidth, kTiles>, std::int64_t{call.batch} * call.heads,
                       kGroup, shared, call, Access::chunks, stream);
}

template <int kWidth, int kTiles>
int launch_whole_few(const AttentionCall& call, Stream stream) {
  const std::int64_t shared = std::max(whole_few_bytes<kTiles>(), careful_bytes(kWidth, kTiles * kSide));
  return launch_kernel(hopper_whole_few_kernel<Bf16Math, kWidth, kTiles>, std::int64_t{call.batch} * call.heads,
                       kTiles * kGroup, shared, call, Access::chunks, stream);
}

int launch_hopper_whole_forward(const AttentionCall& call, Stream stream) {
  return with_whole(call, [&]<int kWidth, int kTiles>() {
    return kTiles > 1 && has_few_heads(call) ? launch_whole_forward_as<kWidth, kTiles, kTiles>(call, stream)
                                             : launch_whole_forward_as<kWidth, kTiles, 1>(call, stream);
  });
}

int launch_hopper_whole_backward(const AttentionCall& call, Stream stream) {
  return with_whole(call, [&]<int kWidth, int kTiles>() {
    if (call.context < 0) return launch_whole_backward_as<kWidth, kTiles, 1>(call, stream);
    if constexpr (kWidth > 32) {
      if (has_few_heads(call)) return launch_whole_few<kWidth, kTiles>(call, stream);
    } else if constexpr (kTiles > 1) {
      if (has_few_heads(call)) return launch_whole_backward_as<kWidth, kTiles, kTiles>(call, stream);
    }
    if constexpr (kWidth <= 32) return launch_whole_gradients<kWidth, kTiles>(call, stream);
    return launch_whole_backward_as<kWidth, kTiles, 1>(call, stream);
  });
}

}  // namespace
}  // namespace attention

namespace {

bool current_device_is_hopper() {
  int device = 0, major = 0, minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && major == 9 &&
         minor == 0;
}

}  // namespace

HopperAttention hopper_attention(const AttentionCall& call) {
  const int longest = std::max(call.queries, call.keys);
  if (call.width > attention::kSide || longest <= 32 ||
      attention::access_of(call, sizeof(__nv_bfloat16)) != attention::Access::chunks || !current_device_is_hopper()) {
    return HopperAttention::none;
  }
  if (attention::fits_whole(call)) return HopperAttention::whole;
  return call.width > 32 && longest > attention::kMostWholeRows ? HopperAttention::tiles : HopperAttention::none;
}

int attention_forward_hopper_whole(const AttentionCall& call, Stream stream) {
  return attention::launch_hopper_whole_forward(call, stream);
}
int attention_backward_hopper_whole(const AttentionCall& call, Stream stream) {
  return attention::launch_hopper_whole_backward(call, stream);
}

#else

HopperAttention hopper_attention(const AttentionCall&) { return HopperAttention::none; }
int attention_forward_hopper_whole(const AttentionCall&, Stream) { return cudaErrorNotSupported; }
int attention_backward_hopper_whole(const AttentionCall&, Stream) { return cudaErrorNotSupported; }

#endif

}  // namespace norma::cuda
