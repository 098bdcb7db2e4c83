// The largest score and the mean entropy over a few queries of every head: a block to a head, a warp to a query, then
// all queries of the head in order. One launch for several attentions: probes are bound by launches, not by their work.
#include <algorithm>

#include "norma/ops/attention_probe.h"
#include "ops/attention_kernel.h"
#include "ops/cuda/map.cuh"

namespace norma {
namespace {

struct ProbeRow {
  double largest, entropy;
  std::int64_t seen;  // keys; none: the query does not count
};

// One attention.
struct Probed {
  std::int64_t q = 0, k = 0;  // of the first sample and head
  std::int64_t lengths = cuda::kAbsent;
  std::int64_t out = 0;  // [heads, AttentionProbe::size]
};

struct ProbeCall {
  cuda::Members members = {};
  Probed of[kMostAttentionProbes];
  std::int64_t scores = 0;  // f32 [probes, heads, looked_at, keys], scratch
  std::int64_t probes = 1, heads = 0, queries = 0, keys = 0, looked_at = 0, width = 0, q_row = 0, kv_row = 0;
  std::int64_t heads_per_kv = 1;
  float scale = 1.0f;
  bool causal = false;
};

// NaN wins.
__device__ __forceinline__ float largest_of(float a, float b) { return isnan(a) || isnan(b) ? a + b : fmaxf(a, b); }

template <typename T, int V>
__device__ __forceinline__ float probe_dot(const T* q, const T* k, std::int64_t width) {
  float sums[V] = {};
#pragma unroll 4
  for (std::int64_t c = 0; c < width; c += V) {
    float a[V], b[V];
    cuda::load<T, V>(q + c, a);
    cuda::load<T, V>(k + c, b);
#pragma unroll
    for (int j = 0; j < V; ++j) sums[j] = fmaf(a[j], b[j], sums[j]);
  }
  float dot = sums[0];
#pragma unroll
  for (int j = 1; j < V; ++j) dot += sums[j];
  return dot;
}

// Of the query at hand, how many keys it sees.
__device__ __forceinline__ std::int64_t probe_keys(const ProbeCall& call, const Probed& probed, std::byte* member,
                                                   std::int64_t query) {
  std::int64_t keys = call.keys;
  if (const std::int32_t* const lengths = cuda::at<const std::int32_t>(member, probed.lengths)) {
    keys = lengths[0] < 0 ? 0 : (lengths[0] < keys ? lengths[0] : keys);
  }
  return call.causal && query + 1 < keys ? query + 1 : keys;
}

constexpr int kProbeWarps = cuda::kThreads / cuda::kWarp;
static_assert(AttentionProbe::kQueries <= kProbeWarps);

// Of query i of those that are looked at, by one warp; lane 0 has the result.
template <typename T, int V>
__device__ __forceinline__ ProbeRow probe_row(const ProbeCall& call, std::int64_t probe, std::byte* member,
                                              std::int64_t head, std::int64_t i) {
  const Probed& probed = call.of[probe];
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const std::int64_t query = ((i + 1) * call.queries) / call.looked_at - 1;  // the last one included
  const std::int64_t keys = probe_keys(call, probed, member, query);
  const T* const q = cuda::at<const T>(member, probed.q) + head * call.width + query * call.q_row;
  const T* const k = cuda::at<const T>(member, probed.k) + head / call.heads_per_kv * call.width;
  float* const scores =
      cuda::at<float>(member, call.scores) + ((probe * call.heads + head) * call.looked_at + i) * call.keys;
  float most = __int_as_float(0xff800000);  // -infinity
  for (std::int64_t key = lane; key < keys; key += cuda::kWarp) {
    const float score = call.scale * probe_dot<T, V>(q, k + key * call.kv_row, call.width);
    scores[key] = score;  // read by this thread alone
    most = largest_of(most, score);
  }
#pragma unroll
  for (int distance = cuda::kWarp / 2; distance > 0; distance >>= 1) {
    most = largest_of(most, __shfl_xor_sync(cuda::kAll, most, distance));
  }
  double sum = 0, weighted = 0;
  for (std::int64_t key = lane; key < keys; key += cuda::kWarp) {
    const double shifted = static_cast<double>(scores[key] - most), weight = exp(shifted);
    sum += weight;
    weighted += weight == 0 ? 0 : weight * shifted;
  }
  sum = cuda::warp_sum(sum);
  weighted = cuda::warp_sum(weighted);
  return {static_cast<double>(most), log(sum) - weighted / sum, keys};
}

template <typename T, int V>
__global__ void __launch_bounds__(cuda::kThreads) probe_kernel(const __grid_constant__ ProbeCall call) {
  __shared__ ProbeRow rows[kProbeWarps];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t probe = blockIdx.x / call.heads, head = blockIdx.x - probe * call.heads;
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  if (warp < call.looked_at) {
    const ProbeRow row = probe_row<T, V>(call, probe, member, head, warp);
    if (threadIdx.x % cuda::kWarp == 0) rows[warp] = row;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  float largest = __int_as_float(0xff800000);
  double spread = 0;
  for (int i = 0; i < call.looked_at; ++i) {
    if (rows[i].seen == 0) continue;
    largest = largest_of(largest, static_cast<float>(rows[i].largest));
    spread += rows[i].entropy;
  }
  float* const out = cuda::at<float>(member, call.of[probe].out) + head * AttentionProbe::size;
  out[AttentionProbe::logit_max] = largest;
  out[AttentionProbe::entropy] = static_cast<float>(spread / static_cast<double>(call.looked_at));
}

template <typename T>
int run_probe(const ProbeCall& told, cuda::Stream stream) {
  constexpr int kV = cuda::kWide<T>;
  const dim3 grid(static_cast<unsigned>(told.probes * told.heads), static_cast<unsigned>(told.members.count));
  std::int64_t places = 0;
  for (std::int64_t i = 0; i < told.probes; ++i) places |= told.of[i].q | told.of[i].k;
  const bool wide = places % 16 == 0 && (told.width | told.q_row | told.kv_row) % kV == 0;
  if (wide) {
    probe_kernel<T, kV><<<grid, cuda::kThreads, 0, stream>>>(told);
  } else {
    probe_kernel<T, 1><<<grid, cuda::kThreads, 0, stream>>>(told);
  }
  return cuda::launched();
}

cuda::Program probe_program(const AttentionProbe& op, int probes, Types in) {
  const AttentionShape s = attention_shape(op.layout(), op.options(), in);
  const bool packed = op.layout() == QkvLayout::packed;
  const int each = static_cast<int>(in.size()) / probes, lengths_at = packed ? 1 : 3;
  const bool with_lengths = each > lengths_at;
  const ProbeCall shape{.probes = probes,
                        .heads = s.heads,
                        .queries = s.queries,
                        .keys = s.keys,
                        .looked_at = std::min(AttentionProbe::kQueries, s.queries),
                        .width = s.width,
                        .q_row = s.q_row,
                        .kv_row = s.kv_row,
                        .heads_per_kv = s.heads / s.kv_heads,
                        .scale = static_cast<float>(s.scale),
                        .causal = s.mask == Mask::causal};
  const bool narrow = in[0].dtype == DType::bf16;
  const std::int64_t to_keys = s.heads * s.width * static_cast<std::int64_t>(size_of(in[0].dtype));  // of a packed wire
  const std::int64_t scores = probes * s.heads * shape.looked_at * s.keys;
  return {.launch =
              [=](const cuda::Call& call) {
                ProbeCall told = shape;
                told.members = call.members;
                told.scores = call.scratch;
                for (int i = 0; i < probes; ++i) {
                  const int from = i * each;
                  told.of[i] = {.q = call.in(from),
                                .k = packed ? call.in(from) + to_keys : call.in(from + 1),
                                .lengths = with_lengths ? call.in(from + lengths_at) : cuda::kAbsent,
                                .out = call.out(i)};
                }
                return narrow ? run_probe<__nv_bfloat16>(told, call.stream) : run_probe<float>(told, call.stream);
              },
          .scratch_bytes = scores * static_cast<std::int64_t>(sizeof(float))};
}

}  // namespace

cuda::Program cuda_kernel(const AttentionProbe& op, Types in, Types) { return probe_program(op, 1, in); }
cuda::Program cuda_kernel(const AttentionProbes& op, Types in, Types) {
  return probe_program(op.one(), op.count(), in);
}

}  // namespace norma
