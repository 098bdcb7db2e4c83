// A sum over neighbours, added to the stream, and the norm of that: the lanes that add up a node's row have all of it.
#include "norma/norms/neighbour_norm.h"

#include "device/cuda/device.cuh"
#include "norms/row.h"
#include "ops/cuda/neighbour_slices.cuh"

namespace norma {
namespace {

// added = left[i] * sum of right[j] x[j] over the edges (i, j), + bias; sum = stream + added; y = norm(sum)
struct NeighbourNormCall {
  cuda::Members members = {};
  cuda::NeighbourRows rows = {};
  std::int64_t left = cuda::kAbsent, bias = cuda::kAbsent;                      // f32 [nodes], [width]
  std::int64_t stream = 0;                                                      // [nodes, width]
  std::int64_t eps = 0, gain = cuda::kAbsent, shift = cuda::kAbsent;            // f32 [1], [width], [width]
  std::int64_t y = 0, rstd = cuda::kAbsent, mean = cuda::kAbsent;               // mean: if the norm centres
  std::int64_t sum = cuda::kAbsent, added = cuda::kAbsent;                      // added: in the type of x
  bool centres = false, relu = false, narrow_stream = false, narrow_y = false;  // narrow: bf16, else f32
};

constexpr int kV = 4;  // channels of a lane

__device__ __forceinline__ void load_either(bool narrow, std::byte* member, std::int64_t offset, std::int64_t at,
                                            float (&v)[kV]) {
  narrow ? cuda::load<__nv_bfloat16, kV>(cuda::at<const __nv_bfloat16>(member, offset) + at, v)
         : cuda::load<float, kV>(cuda::at<const float>(member, offset) + at, v);
}

__device__ __forceinline__ void store_either(bool narrow, std::byte* member, std::int64_t offset, std::int64_t at,
                                             const float (&v)[kV]) {
  narrow ? cuda::store<__nv_bfloat16, kV>(cuda::at<__nv_bfloat16>(member, offset) + at, v)
         : cuda::store<float, kV>(cuda::at<float>(member, offset) + at, v);
}

// Numbers for each channel, or the same for all if there are none.
__device__ __forceinline__ void load_channels(std::byte* member, std::int64_t offset, int column, float otherwise,
                                              float (&v)[kV]) {
#pragma unroll
  for (int j = 0; j < kV; ++j) v[j] = otherwise;
  if (offset >= 0) cuda::load<float, kV>(cuda::at<const float>(member, offset) + column, v);
}

// Over the lanes of a node, which may be alone in their warp.
template <int kLanes>
__device__ __forceinline__ float lanes_sum(float value) {
  const int first = static_cast<int>(threadIdx.x) % cuda::kWarp / kLanes * kLanes;
  const unsigned own = kLanes == cuda::kWarp ? cuda::kAll : ((1u << kLanes % cuda::kWarp) - 1) << first;
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance >>= 1) value += __shfl_xor_sync(own, value, distance);
  return value;
}

// The norm of a node's row, of which this lane has the channels from `column` on.
template <int kLanes>
__device__ __forceinline__ void normalise(const NeighbourNormCall& call, std::byte* member, int node, int column,
                                          float (&row)[kV]) {
  constexpr float kInverse = 1.0f / (kLanes * kV);
  float mean = 0.0f, squares = 0.0f, gain[kV], shift[kV];
  if (call.centres) {
#pragma unroll
    for (int j = 0; j < kV; ++j) mean += row[j];
    mean = lanes_sum<kLanes>(mean) * kInverse;
  }
#pragma unroll
  for (int j = 0; j < kV; ++j) squares += (row[j] - mean) * (row[j] - mean);
  squares = lanes_sum<kLanes>(squares);
  const float rstd = rsqrtf(squares * kInverse + *cuda::at<const float>(member, call.eps));
  if (column == 0 && call.rstd >= 0) cuda::at<float>(member, call.rstd)[node] = rstd;
  if (column == 0 && call.mean >= 0) cuda::at<float>(member, call.mean)[node] = mean;
  load_channels(member, call.gain, column, 1.0f, gain);
  load_channels(member, call.shift, column, 0.0f, shift);
#pragma unroll
  for (int j = 0; j < kV; ++j) {
    row[j] = (row[j] - mean) * rstd * gain[j] + shift[j];
    if (call.relu && row[j] < 0.0f) row[j] = 0.0f;  // NaN stays
  }
}

template <class T, int kLanes>
__global__ void __launch_bounds__(cuda::kThreads, 4)
    neighbour_norm_kernel(const __grid_constant__ NeighbourNormCall call, const int rounds) {
  constexpr int kTeams = cuda::kThreads / kLanes, kWidth = kLanes * kV;
  __shared__ cuda::BlockEdges<kTeams * cuda::kMostRounds> edges;
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const int thread = static_cast<int>(threadIdx.x), team = thread / kLanes, column = thread % kLanes * kV;
  const int node = static_cast<int>(blockIdx.x) * kTeams * rounds;  // the first of the block
  const int count = min(kTeams * rounds, static_cast<int>(call.rows.nodes) - node);
  cuda::hold_edges(call.rows, member, node, count, edges);
  const auto* const x = reinterpret_cast<const std::byte*>(cuda::at<const T>(member, call.rows.x) + column);
  const float* const left = cuda::at<const float>(member, call.left);
  for (int i = team; i < count; i += kTeams) {
    const std::int64_t at = std::int64_t{node + i} * kWidth + column;
    float row[kV], added[kV] = {}, bias[kV];
    load_either(call.narrow_stream, member, call.stream, at, row);  // on its way beside the neighbours
    cuda::sum_neighbours<T, kV>(call.rows, member, x, edges, i, added);
    load_channels(member, call.bias, column, 0.0f, bias);
    const float whole = left == nullptr ? 1.0f : left[node + i];
#pragma unroll
    for (int j = 0; j < kV; ++j) {
      added[j] = left == nullptr ? added[j] + bias[j] : fmaf(whole, added[j], bias[j]);
      row[j] += added[j];
    }
    if (call.added >= 0) cuda::store<T, kV>(cuda::at<T>(member, call.added) + at, added);
    if (call.narrow_stream) cuda::unpack<__nv_bfloat16, kV>(cuda::pack<__nv_bfloat16, kV>(row), row);
    if (call.sum >= 0) store_either(call.narrow_stream, member, call.sum, at, row);
    normalise<kLanes>(call, member, node + i, column, row);
    store_either(call.narrow_y, member, call.y, at, row);
  }
}

template <class T, int kLanes>
int run_neighbour_norm(const NeighbourNormCall& call, cuda::Stream stream) {
  constexpr int kTeams = cuda::kThreads / kLanes;
  // Rows are whole lines of memory, but what is given may be a view that begins between them.
  if (!cuda::aligned(kV * sizeof(float), {call.rows.x, call.stream, call.bias, call.gain, call.shift}))
    return static_cast<int>(cudaErrorMisalignedAddress);
  const int rounds = cuda::neighbour_rounds(call.rows, kTeams, 1, call.members.count);
  const dim3 grid(cuda::blocks_for(call.rows.nodes, kTeams * rounds), static_cast<unsigned>(call.members.count));
  neighbour_norm_kernel<T, kLanes><<<grid, cuda::kThreads, 0, stream>>>(call, rounds);
  return cuda::launched();
}

// The same of many members, in slices of channels: the blocks of a cluster have a member's, and tell each other what
// their channels of a node come to, its mean and the squares around that.
__device__ __forceinline__ unsigned there(const float2* mine, int block) {
  unsigned at = 0;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(at)
      : "r"(static_cast<unsigned>(__cvta_generic_to_shared(mine))), "r"(block));
  return at;
}
__device__ __forceinline__ float2 read_there(unsigned at) {
  float2 value;
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];" : "=f"(value.x), "=f"(value.y) : "r"(at) : "memory");
  return value;
}
__device__ __forceinline__ void sync_cluster() {
  __syncthreads();  // warps come together again
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

template <int kSlices>
__global__ void __launch_bounds__(cuda::kSliceThreads, 2)
    neighbour_norm_slices_kernel(const __grid_constant__ NeighbourNormCall call) {
#if __CUDA_ARCH__ >= 900
  static_assert(kV == cuda::kSliceV && cuda::kSliceLanes == 2);
  constexpr int kWidth = kSlices * cuda::kSlice, kMine = kSlices / cuda::kSliceLanes;
  extern __shared__ __align__(16) float slice[];
  if (cuda::skipped(call.members, blockIdx.y)) return;  // all of the cluster
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const int nodes = static_cast<int>(call.rows.nodes), thread = static_cast<int>(threadIdx.x);
  auto* const parts = reinterpret_cast<float2*>(slice + nodes * cuda::kSlice);  // of each node
  auto* const first = reinterpret_cast<cuda::FirstEdge*>(parts + nodes);
  cuda::hold_slice(call.rows, member, static_cast<int>(blockIdx.x) * cuda::kSlice, slice, first);
  const int half = thread % cuda::kSliceLanes, lane = half * kV, team = thread / cuda::kSliceLanes;
  const int column = static_cast<int>(blockIdx.x) * cuda::kSlice + lane;
  const std::int32_t* const to = cuda::at<const std::int32_t>(member, call.rows.edges) + call.rows.count;
  const float* const left = cuda::at<const float>(member, call.left);
  float bias[kV];
  load_channels(member, call.bias, column, 0.0f, bias);
  for (int node = team; node < nodes; node += cuda::kSliceTeams) {
    const std::int64_t at = std::int64_t{node} * kWidth + column;
    float row[kV], added[kV] = {}, mean = 0.0f, squares = 0.0f;
    load_either(false, member, call.stream, at, row);
    const float whole = left == nullptr ? 1.0f : left[node];
    cuda::sum_in_slice(call.rows, to, slice, first, node, lane, added);
#pragma unroll
    for (int j = 0; j < kV; ++j) {
      added[j] = left == nullptr ? added[j] + bias[j] : fmaf(whole, added[j], bias[j]);
      row[j] += added[j];
      mean += row[j];
    }
    if (call.added >= 0) store_either(false, member, call.added, at, added);
    store_either(false, member, call.sum, at, row);
    mean = call.centres ? lanes_sum<cuda::kSliceLanes>(mean) * (1.0f / cuda::kSlice) : 0.0f;
#pragma unroll
    for (int j = 0; j < kV; ++j) squares += (row[j] - mean) * (row[j] - mean);
    squares = lanes_sum<cuda::kSliceLanes>(squares);
    if (half == 0) parts[node] = make_float2(mean, squares);
  }
  sync_cluster();
  unsigned from[kMine];  // every second block for each lane
#pragma unroll
  for (int k = 0; k < kMine; ++k) from[k] = there(parts, k * cuda::kSliceLanes + half);
  const float eps = *cuda::at<const float>(member, call.eps);
  float gain[kV], shift[kV];
  load_channels(member, call.gain, column, 1.0f, gain);
  load_channels(member, call.shift, column, 0.0f, shift);
  for (int node = team; node < nodes; node += cuda::kSliceTeams) {
    const std::int64_t at = std::int64_t{node} * kWidth + column;
    float row[kV], mean = 0.0f, squares = 0.0f;
    load_either(false, member, call.sum, at, row);  // this thread's own
    float2 of[kMine];
#pragma unroll
    for (int k = 0; k < kMine; ++k) of[k] = read_there(from[k] + static_cast<unsigned>(node * sizeof(float2)));
#pragma unroll
    for (int k = 0; k < kMine; ++k) mean += of[k].x;
    mean = lanes_sum<cuda::kSliceLanes>(mean) * (1.0f / kSlices);
#pragma unroll
    for (int k = 0; k < kMine; ++k) squares += of[k].y + cuda::kSlice * (of[k].x - mean) * (of[k].x - mean);
    const float rstd = rsqrtf(lanes_sum<cuda::kSliceLanes>(squares) * (1.0f / kWidth) + eps);
    if (column == 0 && call.rstd >= 0) cuda::at<float>(member, call.rstd)[node] = rstd;
    if (column == 0 && call.mean >= 0) cuda::at<float>(member, call.mean)[node] = mean;
#pragma unroll
    for (int j = 0; j < kV; ++j) {
      row[j] = (row[j] - mean) * rstd * gain[j] + shift[j];
      if (call.relu && row[j] < 0.0f) row[j] = 0.0f;  // NaN stays
    }
    store_either(false, member, call.y, at, row);
  }
  sync_cluster();  // others may still read what is here
#endif
}

template <int kSlices>
bool in_slices(const NeighbourNormCall& call) {
  static const bool old = trial("NORMA_TRIAL_SLICES", "old") || trial("NORMA_TRIAL_SLICES", "sums");
  static const bool has_clusters = [] {
    cudaFuncAttributes found{};
    return cudaFuncGetAttributes(&found, neighbour_norm_slices_kernel<kSlices>) == cudaSuccess &&
           found.ptxVersion >= 90;
  }();
  return !old && has_clusters && !call.narrow_stream && !call.narrow_y && call.sum >= 0 &&
         cuda::slices_pay(call.rows, call.members, sizeof(float2)) &&
         cuda::aligned(16, {call.rows.x, call.stream, call.sum, call.added, call.y, call.bias, call.gain, call.shift});
}

template <int kSlices>
int run_in_slices(const NeighbourNormCall& call, cuda::Stream stream) {
  const std::int64_t bytes = cuda::slice_bytes(call.rows.nodes, sizeof(float2));
  const cudaError_t status = cudaFuncSetAttribute(neighbour_norm_slices_kernel<kSlices>,
                                                  cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (status != cudaSuccess) return static_cast<int>(status);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = kSlices;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(kSlices, static_cast<unsigned>(call.members.count));
  launch.blockDim = dim3(cuda::kSliceThreads);
  launch.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  launch.stream = stream;
  launch.attrs = &cluster;
  launch.numAttrs = 1;
  return static_cast<int>(cudaLaunchKernelEx(&launch, neighbour_norm_slices_kernel<kSlices>, call));
}

template <class T>
int run_neighbour_norm_of(const NeighbourNormCall& call, cuda::Stream stream) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (call.rows.width == 64 && in_slices<8>(call)) return run_in_slices<8>(call, stream);
    if (call.rows.width == 32 && in_slices<4>(call)) return run_in_slices<4>(call, stream);
  }
  if (call.rows.width == 32 * kV) return run_neighbour_norm<T, 32>(call, stream);
  if (call.rows.width == 16 * kV) return run_neighbour_norm<T, 16>(call, stream);
  if (call.rows.width == 8 * kV) return run_neighbour_norm<T, 8>(call, stream);
  return static_cast<int>(cudaErrorInvalidValue);
}

}  // namespace

cuda::Program cuda_kernel(const NeighbourNorm& op, Types in, Types out) {
  const auto narrow = [](const Type& type) { return type.dtype == DType::bf16; };
  const int left = op.sum().left(), right = op.sum().right(), bias = op.sum().bias(), stream = op.stream();
  const bool gain = has_gain(op.norm().options().affine), shift = has_bias(op.norm().options().affine);
  const std::int64_t nodes = in[0].shape[0];
  const NeighbourNormCall shape{
      .rows = {.nodes = nodes, .width = in[0].shape.elements() / nodes, .count = in[1].shape[1]},
      .centres = centres(op.norm().definition()),
      .relu = op.norm().options().relu,
      .narrow_stream = narrow(in[static_cast<std::size_t>(stream)]),
      .narrow_y = narrow(out[0])};
  return {.launch = [=, narrow_x = narrow(in[0])](const cuda::Call& call) {
    NeighbourNormCall told = shape;
    told.members = call.members;
    told.rows.x = call.in(0);
    told.rows.edges = call.in(1);
    if (left >= 0) told.left = call.in(left);
    if (right >= 0) told.rows.right = call.in(right);
    told.bias = call.in(bias);
    told.stream = call.in(stream);
    int next = stream + 1, next_out = 0;
    told.eps = call.in(next++);
    if (gain) told.gain = call.in(next++);
    if (shift) told.shift = call.in(next++);
    told.y = call.out(next_out++);
    told.rstd = call.out(next_out++);
    if (told.centres) told.mean = call.out(next_out++);
    told.sum = call.out(next_out++);
    told.added = call.out(next_out++);
    return narrow_x ? run_neighbour_norm_of<__nv_bfloat16>(told, call.stream)
                    : run_neighbour_norm_of<float>(told, call.stream);
  }};
}

}  // namespace norma
