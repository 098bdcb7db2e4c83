// Sums over neighbours, scaled or not: lanes of a warp to a node and some of its channels, all of them or as many as
// the channels keep busy; or, for many members, a block to some channels of all nodes.
#include "norma/ops/neighbours.h"

#include <array>

#include "device/cuda/device.cuh"
#include "norma/core/trial.h"
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

// A block has some channels of all nodes in shared memory, times `right`, and adds rows up there: they leave memory
// once instead of coming from the second cache for every edge. For
// members whose nodes fit and that are many.
constexpr int kSlice = 8, kSliceV = 4, kSliceLanes = kSlice / kSliceV, kSliceThreads = 512, kSliceAtOnce = 8;
constexpr std::int64_t kSliceBytes = 115712;  // two blocks to a multiprocessor

constexpr std::int64_t slice_bytes(std::int64_t nodes) {
  return nodes * kSlice * std::int64_t{sizeof(float)} + (nodes + 1) * std::int64_t{sizeof(int)};
}

// The slice of x, on its way; and where the edges of each node begin.
__device__ __forceinline__ void bring_slice(const cuda::NeighbourRows& rows, std::byte* member, float* slice,
                                            int* first) {
  const int nodes = static_cast<int>(rows.nodes), count = static_cast<int>(rows.count);
  const float* const x = cuda::at<const float>(member, rows.x) + blockIdx.x * kSlice;
  const std::int32_t* const from = cuda::at<const std::int32_t>(member, rows.edges);
  for (int i = static_cast<int>(threadIdx.x); i < nodes * kSliceLanes; i += kSliceThreads) {
    const float* const row = x + i / kSliceLanes * rows.width + i % kSliceLanes * kSliceV;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(slice + i * kSliceV))),
                 "l"(row)
                 : "memory");
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int i = static_cast<int>(threadIdx.x); i <= nodes; i += kSliceThreads) first[i] = 0;
  __syncthreads();
  for (int edge = static_cast<int>(threadIdx.x); edge <= count; edge += kSliceThreads) {
    const int before = edge == 0 ? -1 : from[edge - 1], here = edge == count ? nodes : from[edge];
    for (int i = max(before, -1) + 1; i <= min(here, nodes); ++i) first[i] = edge;
  }
}

__global__ void __launch_bounds__(kSliceThreads, 2)
    neighbour_slices_kernel(const __grid_constant__ NeighbourCall call) {
  extern __shared__ __align__(16) float slice[];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const int nodes = static_cast<int>(call.rows.nodes), thread = static_cast<int>(threadIdx.x);
  int* const first = reinterpret_cast<int*>(slice + nodes * kSlice);
  bring_slice(call.rows, member, slice, first);
  const float* const right = cuda::at<const float>(member, call.rows.right);
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  for (int i = thread; right != nullptr && i < nodes * kSliceLanes; i += kSliceThreads) {  // what it brought itself
    float values[kSliceV];
    cuda::load<float, kSliceV>(slice + i * kSliceV, values);
    const float by = right[i / kSliceLanes];
#pragma unroll
    for (int j = 0; j < kSliceV; ++j) values[j] *= by;
    cuda::store<float, kSliceV>(slice + i * kSliceV, values);
  }
  __syncthreads();
  const int lane = thread % kSliceLanes * kSliceV;
  const std::int64_t column = blockIdx.x * kSlice + lane;
  const std::int32_t* const to = cuda::at<const std::int32_t>(member, call.rows.edges) + call.rows.count;
  const float* const left = cuda::at<const float>(member, call.left);
  float* const y = cuda::at<float>(member, call.y) + column;
  float bias[kSliceV] = {};
  if (call.bias >= 0) cuda::load<float, kSliceV>(cuda::at<const float>(member, call.bias) + column, bias);
  for (int node = thread / kSliceLanes; node < nodes; node += kSliceThreads / kSliceLanes) {
    const int end = first[node + 1];
    const float whole = left == nullptr ? 1.0f : left[node];
    float sum[kSliceV] = {};
    for (int edge = first[node]; edge < end; edge += kSliceAtOnce) {
      int place[kSliceAtOnce];
#pragma unroll
      for (int j = 0; j < kSliceAtOnce; ++j) place[j] = to[min(edge + j, end - 1)];
#pragma unroll
      for (int j = 0; j < kSliceAtOnce; ++j) {
        if (edge + j >= end) continue;
        float values[kSliceV];
        const bool known = place[j] >= 0 && place[j] < nodes;
        cuda::load<float, kSliceV>(slice + (known ? place[j] : 0) * kSlice + lane, values);
#pragma unroll
        for (int k = 0; k < kSliceV; ++k) sum[k] += known ? values[k] : nanf("");
      }
    }
    finish(call, whole, bias, sum);
    cuda::store<float, kSliceV>(y + node * call.rows.width, sum);
  }
}

bool in_slices(const NeighbourCall& call) {
  static const bool old = trial("NORMA_TRIAL_SLICES", "old");
  constexpr std::int64_t kFewestBlocks = 264, kMostEdges = 8;  // blocks; edges of a node, which each slice reads again
  return !old && call.rows.width % kSlice == 0 && slice_bytes(call.rows.nodes) <= kSliceBytes &&
         call.rows.count <= kMostEdges * call.rows.nodes &&
         call.rows.width / kSlice * call.members.count >= kFewestBlocks &&
         cuda::aligned(16, {call.rows.x, call.y, call.bias});
}

int run_in_slices(const NeighbourCall& call, cuda::Stream stream) {
  const auto bytes = static_cast<int>(slice_bytes(call.rows.nodes));
  const cudaError_t status =
      cudaFuncSetAttribute(neighbour_slices_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return static_cast<int>(status);
  const dim3 grid(cuda::blocks_for(call.rows.width, kSlice), static_cast<unsigned>(call.members.count));
  neighbour_slices_kernel<<<grid, kSliceThreads, static_cast<std::size_t>(bytes), stream>>>(call);
  return cuda::launched();
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
  if (!narrow && in_slices(call)) return run_in_slices(call, stream);
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
