// Sums over neighbours, scaled or not: a warp to a node and some of its channels. It finds its edges by bisection,
// reads 32 of them at once and adds their rows in the order of edges, as the CPU does: no atomics, one order.
#include "norma/ops/neighbours.h"

#include "device/cuda/device.cuh"

namespace norma {
namespace {

struct NeighbourCall {
  cuda::Members members = {};
  std::int64_t x = 0, edges = 0, y = 0;
  std::int64_t left = cuda::kAbsent, right = cuda::kAbsent;  // [nodes], f32: of the sum, and of what is added
  std::int64_t nodes = 0, width = 0, count = 0;
};

// The first edge of a node, or of the next that has one; all lanes together, 32 places a round.
__device__ __forceinline__ std::int64_t first_edge(const std::int32_t* from, std::int64_t count, std::int64_t node) {
  std::int64_t low = 0, high = count;  // the answer is in [low, high]
  while (high > low) {
    const std::int64_t step = (high - low + cuda::kWarp - 1) / cuda::kWarp;
    const std::int64_t place = low + static_cast<std::int64_t>(threadIdx.x) * step;
    const bool before = place < high && from[place] < node;
    const int passed = __popc(__ballot_sync(cuda::kAll, before));  // lanes, from the first on
    if (passed == 0) return low;
    high = min(high, low + passed * step);
    low += (passed - 1) * step + 1;
  }
  return low;
}

template <class T, int V>
__global__ void __launch_bounds__(cuda::kThreads) neighbours_kernel(const __grid_constant__ NeighbourCall call) {
  const std::int64_t node = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (cuda::skipped(call.members, blockIdx.z) || node >= call.nodes) return;  // a whole warp
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const std::int32_t* const from = cuda::at<const std::int32_t>(member, call.edges);
  const std::int64_t column = (std::int64_t{blockIdx.y} * cuda::kWarp + threadIdx.x) * V;
  const bool has = column < call.width;
  const T* const x = cuda::at<const T>(member, call.x) + (has ? column : 0);
  const float* const right = cuda::at<const float>(member, call.right);
  float sum[V] = {};
  bool more = true;
  for (std::int64_t edge = first_edge(from, call.count, node); more; edge += cuda::kWarp) {
    const std::int64_t mine = edge + threadIdx.x;
    const bool ours = mine < call.count && from[mine] == node;
    const std::int64_t neighbour = ours ? from[call.count + mine] : 0;
    const bool bad = neighbour < 0 || neighbour >= call.nodes;
    const int there = __popc(__ballot_sync(cuda::kAll, ours));
    const unsigned missing = __ballot_sync(cuda::kAll, ours && bad);
    more = there == cuda::kWarp;
    const int place = bad ? 0 : static_cast<int>(neighbour);
    const float factor = right == nullptr ? 1.0f : right[place];
#pragma unroll 4
    for (int k = 0; k < there; ++k) {
      const std::int64_t row = __shfl_sync(cuda::kAll, place, k);
      const float by = __shfl_sync(cuda::kAll, factor, k);
      float values[V];
      cuda::load<T, V>(x + row * call.width, values);
#pragma unroll
      for (int j = 0; j < V; ++j) sum[j] = fmaf(by, missing >> k & 1 ? nanf("") : values[j], sum[j]);
    }
  }
  const float* const left = cuda::at<const float>(member, call.left);
  if (left != nullptr) {
#pragma unroll
    for (int j = 0; j < V; ++j) sum[j] *= left[node];
  }
  if (has) cuda::store<T, V>(cuda::at<T>(member, call.y) + node * call.width + column, sum);
}

template <class T, int V>
int run_neighbours(const NeighbourCall& call, cuda::Stream stream) {
  const dim3 block(cuda::kWarp, cuda::kThreads / cuda::kWarp);
  const dim3 grid(cuda::blocks_for(call.nodes, block.y), cuda::blocks_for(call.width, cuda::kWarp * V),
                  static_cast<unsigned>(call.members.count));
  neighbours_kernel<T, V><<<grid, block, 0, stream>>>(call);
  return cuda::launched();
}

template <class T>
int run_neighbours_wide(const NeighbourCall& call, cuda::Stream stream) {
  const auto fits = [&](int v) {
    return call.width % v == 0 && call.width >= cuda::kWarp * v && (call.x | call.y) % (v * sizeof(T)) == 0;
  };
  if (fits(4)) return run_neighbours<T, 4>(call, stream);
  return fits(2) ? run_neighbours<T, 2>(call, stream) : run_neighbours<T, 1>(call, stream);
}

}  // namespace

static cuda::Program neighbour_program(Types in, int left, int right) {
  const std::int64_t nodes = in[0].shape[0];
  const NeighbourCall shape{.nodes = nodes, .width = in[0].shape.elements() / nodes, .count = in[1].shape[1]};
  return {.launch = [shape, left, right, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
    NeighbourCall told = shape;
    told.members = call.members;
    told.x = call.in(0);
    told.edges = call.in(1);
    told.y = call.out(0);
    if (left >= 0) told.left = call.in(left);
    if (right >= 0) told.right = call.in(right);
    return narrow ? run_neighbours_wide<__nv_bfloat16>(told, call.stream)
                  : run_neighbours_wide<float>(told, call.stream);
  }};
}

cuda::Program cuda_kernel(const NeighbourSum&, Types in, Types) { return neighbour_program(in, -1, -1); }

cuda::Program cuda_kernel(const NeighbourScaled& op, Types in, Types) {
  return neighbour_program(in, op.left(), op.right());
}

}  // namespace norma
