// Sums over neighbours, scaled or not: lanes of a warp to a node and some of its channels, all of them or as many as
// the channels keep busy.
#include "norma/ops/neighbours.h"

#include <array>

#include "device/cuda/device.cuh"
#include "norma/ops/neighbour_affine.h"
#include "ops/cuda/activation_math.cuh"
#include "ops/cuda/neighbours.cuh"

namespace norma {

cuda::Program cuda_kernel(const ActivationOp& op, Types in, Types out);

namespace {

// y[i] = left[i] * sum of right[j] x[j] over the edges (i, j), + bias.
struct NeighbourCall {
  cuda::Members members = {};
  cuda::NeighbourRows rows = {};
  std::int64_t y = 0;                 // [nodes, width]
  std::int64_t left = cuda::kAbsent;  // [nodes], f32: of the sum
  std::int64_t bias = cuda::kAbsent;  // [width], f32
  bool relu = false;                  // of the result
};

// What becomes of a sum once it is complete. `whole` and `bias` are read only where the call has them.
template <int V>
__device__ __forceinline__ void finish(const NeighbourCall& call, float whole, const float (&bias)[V],
                                       float (&sum)[V]) {
#pragma unroll
  for (int j = 0; j < V; ++j) {
    if (call.bias >= 0) {
      sum[j] = call.left >= 0 ? fmaf(whole, sum[j], bias[j]) : sum[j] + bias[j];
    } else if (call.left >= 0) {
      sum[j] *= whole;
    }
    if (call.relu) sum[j] = activation_value<Activation::relu, Exactness::f32>(sum[j]);
  }
}

template <class T, int V, int kLanes>
__global__ void __launch_bounds__(cuda::kThreads, 5)
    neighbours_kernel(const __grid_constant__ NeighbourCall call, const int rounds) {
  constexpr int kTeams = cuda::kThreads / kLanes;
  __shared__ cuda::BlockEdges<kTeams * cuda::kMostRounds> edges;
  if (cuda::skipped(call.members, blockIdx.z)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const int thread = static_cast<int>(threadIdx.x), team = thread / kLanes, lane = thread % kLanes;
  const int node = static_cast<int>(blockIdx.x) * kTeams * rounds;  // the first of the block
  const int count = min(kTeams * rounds, static_cast<int>(call.rows.nodes) - node);
  cuda::hold_edges(call.rows, member, node, count, edges);
  const std::int64_t column = (std::int64_t{blockIdx.y} * kLanes + lane) * V;
  if (column >= call.rows.width) return;
  const auto* const x = reinterpret_cast<const std::byte*>(cuda::at<const T>(member, call.rows.x) + column);
  const float* const left = cuda::at<const float>(member, call.left);
  T* const y = cuda::at<T>(member, call.y) + column;
  for (int i = team; i < count; i += kTeams) {
    float sum[V] = {}, bias[V] = {};
    cuda::sum_neighbours<T, V>(call.rows, member, x, edges, i, sum);
    if (call.bias >= 0) cuda::load<float, V>(cuda::at<const float>(member, call.bias) + column, bias);
    finish(call, left == nullptr ? 1.0f : left[node + i], bias, sum);
    cuda::store<T, V>(y + (node + i) * call.rows.width, sum);
  }
}

template <class T, int V, int kLanes>
int run_neighbours(const NeighbourCall& call, cuda::Stream stream) {
  constexpr int kTeams = cuda::kThreads / kLanes;
  const unsigned columns = cuda::blocks_for(call.rows.width, kLanes * V);
  const int rounds = cuda::neighbour_rounds(call.rows, kTeams, columns, call.members.count);
  const dim3 grid(cuda::blocks_for(call.rows.nodes, kTeams * rounds), columns,
                  static_cast<unsigned>(call.members.count));
  neighbours_kernel<T, V, kLanes><<<grid, cuda::kThreads, 0, stream>>>(call, rounds);
  return cuda::launched();
}

template <class T>
int run_neighbours_wide(const NeighbourCall& call, cuda::Stream stream) {
  const auto fits = [&](int v) {
    return call.rows.width % v == 0 && (call.rows.x | call.y) % (v * sizeof(T)) == 0 && cuda::aligned(16, {call.bias});
  };
  constexpr int kMany = 4;
  if (fits(kMany) && call.rows.width >= cuda::kWarp * kMany) return run_neighbours<T, kMany, 32>(call, stream);
  if (fits(kMany) && call.rows.width >= 16 * kMany) return run_neighbours<T, kMany, 16>(call, stream);
  return fits(kMany) && call.rows.width >= 8 * kMany ? run_neighbours<T, kMany, 8>(call, stream)
                                                     : run_neighbours<T, 1, 32>(call, stream);
}

int run_neighbours_as(bool narrow, const NeighbourCall& call, cuda::Stream stream) {
  return narrow ? run_neighbours_wide<__nv_bfloat16>(call, stream) : run_neighbours_wide<float>(call, stream);
}

// Which input is which; -1: there is none. With an activation output 1 is what it is given.
struct CudaNeighbourInputs {
  int left = -1, right = -1, bias = -1;
  Activation activation = Activation::none;
};

cuda::Program neighbour_program(Types in, Types out, const CudaNeighbourInputs& which) {
  const std::int64_t nodes = in[0].shape[0];
  const cuda::NeighbourRows rows{.nodes = nodes, .width = in[0].shape.elements() / nodes, .count = in[1].shape[1]};
  std::function<int(const cuda::Call&)> activate;
  if (which.activation != Activation::none) {
    const std::array type = {out[0]};
    activate = cuda_kernel(ActivationOp(which.activation), type, type).launch;
  }
  return {.launch = [=, narrow = in[0].dtype == DType::bf16](const cuda::Call& call) {
    const bool before = activate && call.out(1) >= 0;  // whether what the activation is given is wanted
    const auto input = [&](int index) { return index < 0 ? cuda::kAbsent : call.in(index); };
    NeighbourCall told{.members = call.members, .rows = rows};
    told.rows.x = call.in(0);
    told.rows.edges = call.in(1);
    told.rows.right = input(which.right);
    told.y = before ? call.out(1) : call.out(0);
    told.left = input(which.left);
    told.bias = input(which.bias);
    told.relu = which.activation == Activation::relu && !before;
    if (const int error = run_neighbours_as(narrow, told, call.stream)) return error;
    if (!activate || told.relu) return 0;
    const std::array offsets = {told.y, call.out(0)};
    cuda::Call second = call;
    second.offsets = offsets.data();
    second.inputs = 1;
    return activate(second);
  }};
}

}  // namespace

cuda::Program cuda_kernel(const NeighbourSum&, Types in, Types out) { return neighbour_program(in, out, {}); }

cuda::Program cuda_kernel(const NeighbourScaled& op, Types in, Types out) {
  return neighbour_program(in, out, {.left = op.left(), .right = op.right()});
}

cuda::Program cuda_kernel(const NeighbourAffine& op, Types in, Types out) {
  return neighbour_program(in, out,
                           {.left = op.left(), .right = op.right(), .bias = op.bias(), .activation = op.activation()});
}

}  // namespace norma
