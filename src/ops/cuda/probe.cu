// The largest score and the mean entropy over a few queries of every head, one block per head.
#include <algorithm>

#include "device/cuda/device.cuh"
#include "norma/ops/attention_probe.h"
#include "ops/attention_kernel.h"

namespace norma {
namespace {

struct ProbeCall {
  cuda::Members members = {};
  std::int64_t q = 0, k = 0;  // of the first sample and head
  std::int64_t lengths = cuda::kAbsent;
  std::int64_t scores = 0;  // f32 [heads, keys], scratch
  std::int64_t out = 0;     // [heads, AttentionProbe::size]
  std::int64_t queries = 0, keys = 0, looked_at = 0, width = 0, q_row = 0, kv_row = 0;
  std::int64_t heads_per_kv = 1;
  float scale = 1.0f;
  bool causal = false;
};

// NaN wins.
__device__ __forceinline__ float largest_of(float a, float b) { return isnan(a) || isnan(b) ? a + b : fmaxf(a, b); }

__device__ __forceinline__ float block_largest(float value, float* shared) {
  const bool poisoned = __syncthreads_or(isnan(value) ? 1 : 0) != 0;
  const float most = cuda::block_max(value, shared);
  return poisoned ? __int_as_float(0x7fc00000) : most;
}

__global__ void __launch_bounds__(cuda::kThreads) probe_kernel(const __grid_constant__ ProbeCall call) {
  __shared__ double shared[cuda::kMostWarps];
  __shared__ float shared_max[cuda::kMostWarps];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t head = blockIdx.x;
  const float* const q_head = cuda::at<const float>(member, call.q) + head * call.width;
  const float* const k_head = cuda::at<const float>(member, call.k) + head / call.heads_per_kv * call.width;
  float* const scores = cuda::at<float>(member, call.scores) + head * call.keys;
  std::int64_t visible = call.keys;
  if (const std::int32_t* const lengths = cuda::at<const std::int32_t>(member, call.lengths)) {
    visible = lengths[0] < 0 ? 0 : (lengths[0] < visible ? lengths[0] : visible);
  }
  float largest = __int_as_float(0xff800000);  // -infinity
  double spread = 0;
  for (std::int64_t i = 0; i < call.looked_at; ++i) {
    const std::int64_t query = ((i + 1) * call.queries) / call.looked_at - 1;  // the last one included
    const std::int64_t keys = call.causal && query + 1 < visible ? query + 1 : visible;
    if (keys == 0) continue;  // for all threads alike
    const float* const q = q_head + query * call.q_row;
    float most = __int_as_float(0xff800000);
    for (std::int64_t key = threadIdx.x; key < keys; key += cuda::kThreads) {
      const float* const k = k_head + key * call.kv_row;
      float dot = 0.0f;
      for (std::int64_t c = 0; c < call.width; ++c) dot = fmaf(q[c], k[c], dot);
      scores[key] = call.scale * dot;  // read by this thread alone
      most = largest_of(most, scores[key]);
    }
    most = block_largest(most, shared_max);
    double sum = 0, weighted = 0;
    for (std::int64_t key = threadIdx.x; key < keys; key += cuda::kThreads) {
      const double shifted = static_cast<double>(scores[key] - most), weight = exp(shifted);
      sum += weight;
      weighted += weight == 0 ? 0 : weight * shifted;
    }
    sum = cuda::block_sum(sum, shared);
    weighted = cuda::block_sum(weighted, shared);
    largest = largest_of(largest, most);
    spread += log(sum) - weighted / sum;
  }
  if (threadIdx.x != 0) return;
  float* const out = cuda::at<float>(member, call.out) + head * AttentionProbe::size;
  out[AttentionProbe::logit_max] = largest;
  out[AttentionProbe::entropy] = static_cast<float>(spread / static_cast<double>(call.looked_at));
}

}  // namespace

cuda::Program cuda_kernel(const AttentionProbe& op, Types in, Types) {
  const AttentionShape s = attention_shape(op.layout(), op.options(), in);
  const bool packed = op.layout() == QkvLayout::packed;
  const int lengths_at = packed ? 1 : 3;
  const bool with_lengths = static_cast<int>(in.size()) > lengths_at;
  const ProbeCall shape{.queries = s.queries,
                        .keys = s.keys,
                        .looked_at = std::min(AttentionProbe::kQueries, s.queries),
                        .width = s.width,
                        .q_row = s.q_row,
                        .kv_row = s.kv_row,
                        .heads_per_kv = s.heads / s.kv_heads,
                        .scale = static_cast<float>(s.scale),
                        .causal = s.mask == Mask::causal};
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(float));
  return {.launch =
              [shape, packed, lengths_at, with_lengths, heads = s.heads](const cuda::Call& call) {
                ProbeCall told = shape;
                told.members = call.members;
                told.q = call.in(0);
                told.k = packed ? call.in(0) + heads * told.width * kElement : call.in(1);
                if (with_lengths) told.lengths = call.in(lengths_at);
                told.scores = call.scratch;
                told.out = call.out(0);
                const dim3 grid(static_cast<unsigned>(heads), static_cast<unsigned>(call.members.count));
                probe_kernel<<<grid, cuda::kThreads, 0, call.stream>>>(told);
                return cuda::launched();
              },
          .scratch_bytes = s.heads * s.keys * kElement};
}

}  // namespace norma
