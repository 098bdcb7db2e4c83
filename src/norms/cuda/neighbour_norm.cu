// A sum over neighbours, added to the stream, and the norm of that: the lanes that add up a node's row have all of it.
#include "norma/norms/neighbour_norm.h"

#include "device/cuda/device.cuh"
#include "norms/row.h"
#include "ops/cuda/neighbours.cuh"

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

template <class T>
int run_neighbour_norm_of(const NeighbourNormCall& call, cuda::Stream stream) {
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
