// Attention over neighbours: forward a warp has a node and 32 of its channels, each lane with the scores of its head;
// backward a node and a head. Everything is added in the order of edges: no atomics, one order.
#include "norma/ops/neighbour_attention.h"

#include "ops/cuda/edges.cuh"

namespace norma {
namespace {

struct NeighbourAttentionCall {
  cuda::Members members = {};
  std::int64_t x = 0, query = 0, key = 0, edges = 0;
  std::int64_t y = 0, logs = cuda::kAbsent;  // forward
  std::int64_t dy = 0, means = 0;            // backward: dy . y
  std::int64_t dx = cuda::kAbsent, dquery = cuda::kAbsent, dkey = cuda::kAbsent;
  std::int64_t nodes = 0, heads = 0, width = 0, count = 0;
  float slope = 0;
};

// The edges of one node.
struct EdgeRange {
  const std::int32_t* to;
  std::int64_t begin, end;
  bool sound = true;  // all neighbours exist

  __device__ __forceinline__ EdgeRange(const NeighbourAttentionCall& call, std::byte* member, std::int64_t node) {
    const std::int32_t* const from = cuda::at<const std::int32_t>(member, call.edges);
    to = from + call.count;
    begin = cuda::first_of(from, call.count, node);
    end = cuda::first_of(from, call.count, node + 1);
    const int lane = cuda::thread_index() % cuda::kWarp;
    bool bad = false;
    for (std::int64_t e = begin + lane; e < end; e += cuda::kWarp) bad |= to[e] < 0 || to[e] >= call.nodes;
    sound = __ballot_sync(cuda::kAll, bad) == 0;
  }
};

__device__ __forceinline__ float leaky(float z, float slope) { return z > 0.0f ? z : slope * z; }

__global__ void __launch_bounds__(cuda::kThreads)
    neighbour_attention_kernel(const __grid_constant__ NeighbourAttentionCall call) {
  const std::int64_t node = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (cuda::skipped(call.members, blockIdx.z) || node >= call.nodes) return;  // a whole warp
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const EdgeRange edges(call, member, node);
  const std::int64_t channels = call.heads * call.width;
  const std::int64_t column = std::int64_t{blockIdx.y} * cuda::kWarp + threadIdx.x;
  if (column >= channels) return;
  const std::int64_t head = cuda::quotient(column, call.width);
  const float* const x = cuda::at<const float>(member, call.x) + column;
  const float* const key = cuda::at<const float>(member, call.key) + head;
  const float query = cuda::at<const float>(member, call.query)[node * call.heads + head];
  float sum = 0.0f, y = 0.0f, log = 0.0f;
  if (!edges.sound) {
    y = log = nanf("");
  } else if (edges.end > edges.begin) {
    float largest = -INFINITY;
    for (std::int64_t e = edges.begin; e < edges.end; ++e) {
      const float z = leaky(query + key[edges.to[e] * call.heads], call.slope);
      largest = z > largest || isnan(z) ? z : largest;
    }
#pragma unroll 2
    for (std::int64_t e = edges.begin; e < edges.end; ++e) {
      const std::int64_t other = edges.to[e];
      const float weight = expf(leaky(query + key[other * call.heads], call.slope) - largest);
      sum += weight;
      y = fmaf(weight, x[other * channels], y);
    }
    y *= 1.0f / sum;
    log = largest + logf(sum);
  }
  cuda::at<float>(member, call.y)[node * channels + column] = y;
  if (call.logs >= 0 && column == head * call.width) cuda::at<float>(member, call.logs)[node * call.heads + head] = log;
}

// a . b of one head, all lanes.
__device__ __forceinline__ float head_product(const float* a, const float* b, std::int64_t width) {
  float sum = 0.0f;
  for (std::int64_t c = threadIdx.x; c < width; c += cuda::kWarp) sum = fmaf(a[c], b[c], sum);
  return cuda::warp_sum(sum);
}

// The node and head of a warp.
__device__ __forceinline__ std::int64_t node_and_head() { return std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y; }

__global__ void __launch_bounds__(cuda::kThreads)
    attention_means_kernel(const __grid_constant__ NeighbourAttentionCall call) {
  const std::int64_t at = node_and_head();
  if (cuda::skipped(call.members, blockIdx.z) || at >= call.nodes * call.heads) return;  // a whole warp
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const float mean = head_product(cuda::at<const float>(member, call.dy) + at * call.width,
                                  cuda::at<const float>(member, call.y) + at * call.width, call.width);
  if (threadIdx.x == 0) cuda::at<float>(member, call.means)[at] = mean;
}

// With a(i, j) the weights: dx[j] = sum of a(i, j) dy[i], and of a score a(i, j) (dy[i] . x[j] - dy[i] . y[i]), which
// its slope hands on to query[i] and key[j]. Every edge is there in both directions.
__global__ void __launch_bounds__(cuda::kThreads)
    neighbour_attention_backward_kernel(const __grid_constant__ NeighbourAttentionCall call) {
  const std::int64_t at = node_and_head(), node = cuda::quotient(at, call.heads), head = at - node * call.heads;
  if (cuda::skipped(call.members, blockIdx.z) || node >= call.nodes) return;  // a whole warp
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const EdgeRange edges(call, member, node);
  const float* const x = cuda::at<const float>(member, call.x);
  const float* const dy = cuda::at<const float>(member, call.dy);
  const float* const query = cuda::at<const float>(member, call.query);
  const float* const key = cuda::at<const float>(member, call.key);
  const float* const logs = cuda::at<const float>(member, call.logs);
  const float* const means = cuda::at<const float>(member, call.means);
  const float start = edges.sound ? 0.0f : nanf("");
  const std::int64_t end = edges.sound ? edges.end : edges.begin;
  float dquery = start, dkey = start;
  for (std::int64_t e = edges.begin; e < end; ++e) {
    const std::int64_t other = edges.to[e] * call.heads + head;
    const float out = query[at] + key[other], in = query[other] + key[at];
    const float towards = head_product(dy + at * call.width, x + other * call.width, call.width) - means[at];
    const float back = head_product(dy + other * call.width, x + at * call.width, call.width) - means[other];
    dquery += (out > 0.0f ? 1.0f : call.slope) * expf(leaky(out, call.slope) - logs[at]) * towards;
    dkey += (in > 0.0f ? 1.0f : call.slope) * expf(leaky(in, call.slope) - logs[other]) * back;
  }
  if (threadIdx.x == 0 && call.dquery >= 0) cuda::at<float>(member, call.dquery)[at] = dquery;
  if (threadIdx.x == 0 && call.dkey >= 0) cuda::at<float>(member, call.dkey)[at] = dkey;
  if (call.dx < 0) return;
  for (std::int64_t c = threadIdx.x; c < call.width; c += cuda::kWarp) {
    float sum = start;
    for (std::int64_t e = edges.begin; e < end; ++e) {
      const std::int64_t other = edges.to[e] * call.heads + head;
      sum = fmaf(expf(leaky(query[other] + key[at], call.slope) - logs[other]), dy[other * call.width + c], sum);
    }
    cuda::at<float>(member, call.dx)[at * call.width + c] = sum;
  }
}

NeighbourAttentionCall attention_shape(const NeighbourAttentionOptions& options, Types in) {
  return {.nodes = in[0].shape[0],
          .heads = options.heads,
          .width = in[0].shape[1] / options.heads,
          .count = in[3].shape[1],
          .slope = static_cast<float>(options.slope)};
}

NeighbourAttentionCall with_inputs(NeighbourAttentionCall told, const cuda::Call& call) {
  told.members = call.members;
  told.x = call.in(0), told.query = call.in(1), told.key = call.in(2), told.edges = call.in(3);
  return told;
}

int launch_warps(void (*kernel)(NeighbourAttentionCall), const NeighbourAttentionCall& told, std::int64_t things,
                 std::int64_t across, cuda::Stream stream) {
  const dim3 block(cuda::kWarp, cuda::kThreads / cuda::kWarp);
  const dim3 grid(cuda::blocks_for(things, block.y), static_cast<unsigned>(across),
                  static_cast<unsigned>(told.members.count));
  kernel<<<grid, block, 0, stream>>>(told);
  return cuda::launched();
}

}  // namespace

cuda::Program cuda_kernel(const NeighbourAttention& op, Types in, Types) {
  return {.launch = [shape = attention_shape(op.options(), in)](const cuda::Call& call) {
    NeighbourAttentionCall told = with_inputs(shape, call);
    told.y = call.out(0), told.logs = call.out(1);
    return launch_warps(neighbour_attention_kernel, told, told.nodes,
                        cuda::divide_up(told.heads * told.width, cuda::kWarp), call.stream);
  }};
}

cuda::Program cuda_kernel(const NeighbourAttentionBackward& op, Types in, Types) {
  const NeighbourAttentionCall shape = attention_shape(op.options(), in);
  return {.launch =
              [shape](const cuda::Call& call) {
                NeighbourAttentionCall told = with_inputs(shape, call);
                told.y = call.in(4), told.logs = call.in(5), told.dy = call.in(6);
                told.dx = call.out(0), told.dquery = call.out(1), told.dkey = call.out(2);
                told.means = call.scratch;
                const std::int64_t things = told.nodes * told.heads;
                const int error = launch_warps(attention_means_kernel, told, things, 1, call.stream);
                return error != 0 ? error
                                  : launch_warps(neighbour_attention_backward_kernel, told, things, 1, call.stream);
              },
          .scratch_bytes = shape.nodes * shape.heads * static_cast<std::int64_t>(sizeof(float))};
}

}  // namespace norma
