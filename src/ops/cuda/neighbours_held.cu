// Sums over neighbours with a slice of all rows in shared memory: a block has the same 32 bytes of every node of a
// member, so that memory is read once and not once for each edge. Two lanes to a node take its edges in order.
#include "ops/cuda/copy_async.cuh"
#include "ops/cuda/neighbours.cuh"

namespace norma::cuda {
namespace {

constexpr int kHeldThreads = 512;
constexpr int kHeldPieces = 2;  // of 16 bytes: what is held of a row
// Two blocks on a multiprocessor of 228 KiB, of which each block costs 1 KiB besides: one brings its slice while the
// other adds.
constexpr std::int64_t kHeldBytes = 113 * 1024;
// Fewer blocks leave multiprocessors idle. No question to the card: tests know which kernel they run.
constexpr std::int64_t kFewestHeldBlocks = 128;
constexpr int kEdgesAtOnce = 4;

// Of each node, and one more: its slice, its first edge and its factor.
std::int64_t held_bytes(std::int64_t nodes) {
  return (nodes + 1) * static_cast<std::int64_t>(kHeldPieces * sizeof(uint4) + sizeof(int) + sizeof(float));
}

// first[i] is the first edge whose node is at least i; first[nodes] is the number of edges.
__device__ __forceinline__ void find_first_edges(const std::int32_t* from, int count, int nodes, int* first) {
  for (int base = static_cast<int>(threadIdx.x) * kEdgesAtOnce; base <= count; base += kHeldThreads * kEdgesAtOnce) {
    int before = base == 0 ? -1 : __ldg(from + base - 1), here[kEdgesAtOnce];
#pragma unroll
    for (int j = 0; j < kEdgesAtOnce; ++j) here[j] = base + j < count ? __ldg(from + base + j) : nodes;
#pragma unroll
    for (int j = 0; j < kEdgesAtOnce; ++j) {
      const int last = min(here[j], nodes);
      for (int node = max(before + 1, 0); node <= last; ++node) first[node] = base + j;
      before = last;
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kHeldThreads, 2) held_neighbours_kernel(const __grid_constant__ NeighbourCall call) {
  constexpr int kV = 16 / static_cast<int>(sizeof(T)), kNan = 0x7fc07fc0;  // a NaN as f32 and as two bf16
  if (skipped(call.members, blockIdx.y)) return;
  std::byte* const member = base_of(call.members, blockIdx.y);
  const int nodes = static_cast<int>(call.nodes), thread = static_cast<int>(threadIdx.x), piece = thread % kHeldPieces;
  extern __shared__ uint4 held[];                                                     // [nodes + 1, kHeldPieces]
  int* const first = reinterpret_cast<int*>(held + (nodes + 1) * kHeldPieces);        // [nodes + 1]
  float* const factor = reinterpret_cast<float*>(first + nodes + 1);                  // [nodes + 1]
  const std::int64_t column = (std::int64_t{blockIdx.x} * kHeldPieces + piece) * kV;  // of this lane
  const T* const x = at<const T>(member, call.x) + column;
  for (int i = thread; i < nodes * kHeldPieces; i += kHeldThreads)
    copy_16_bytes(held + i, x + i / kHeldPieces * call.width);
  // A neighbour that does not exist is the row behind the last.
  if (thread < kHeldPieces) held[nodes * kHeldPieces + thread] = make_uint4(kNan, kNan, kNan, kNan);
  const float* const right = at<const float>(member, call.right);
  for (int i = thread; i <= nodes; i += kHeldThreads) factor[i] = right == nullptr || i == nodes ? 1.0f : right[i];
  const std::int32_t* const from = at<const std::int32_t>(member, call.edges);
  const std::int32_t* const to = from + call.count;
  find_first_edges(from, static_cast<int>(call.count), nodes, first);
  float bias[kV] = {};
  if (call.bias >= 0) {
#pragma unroll
    for (int k = 0; k < kV; ++k) bias[k] = at<const float>(member, call.bias)[column + k];
  }
  const float* const left = at<const float>(member, call.left);
  T* const y = at<T>(member, call.y) + column;
  wait_for_16_byte_copies();
  __syncthreads();
  for (int node = thread / kHeldPieces; node < nodes; node += kHeldThreads / kHeldPieces) {
    const int end = first[node + 1];
    const float whole = left == nullptr ? 1.0f : __ldg(left + node);
    float sum[kV] = {};
    for (int edge = first[node]; edge < end; edge += kEdgesAtOnce) {
      unsigned place[kEdgesAtOnce];
      uint4 raw[kEdgesAtOnce];
      float by[kEdgesAtOnce];
#pragma unroll
      for (int j = 0; j < kEdgesAtOnce; ++j) {
        if (edge + j < end) place[j] = min(static_cast<unsigned>(__ldg(to + edge + j)), static_cast<unsigned>(nodes));
      }
#pragma unroll
      for (int j = 0; j < kEdgesAtOnce; ++j) {
        if (edge + j >= end) continue;
        raw[j] = held[place[j] * kHeldPieces + piece];
        by[j] = factor[place[j]];
      }
#pragma unroll
      for (int j = 0; j < kEdgesAtOnce; ++j) {
        if (edge + j >= end) continue;
        float values[kV];
        unpack<T, kV>(raw[j], values);
#pragma unroll
        for (int k = 0; k < kV; ++k) sum[k] = fmaf(by[j], values[k], sum[k]);
      }
    }
    finish_neighbours(call, whole, bias, sum);
    store<T, kV>(y + node * call.width, sum);
  }
}

template <class T>
int run_held_neighbours(const NeighbourCall& call, Stream stream) {
  const int bytes = static_cast<int>(held_bytes(call.nodes));
  const cudaError_t status =
      cudaFuncSetAttribute(held_neighbours_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return static_cast<int>(status);
  const dim3 grid(blocks_for(call.width * sizeof(T), kHeldPieces * 16), static_cast<unsigned>(call.members.count));
  held_neighbours_kernel<T><<<grid, kHeldThreads, static_cast<std::size_t>(bytes), stream>>>(call);
  return launched();
}

}  // namespace

bool holds_neighbours(const NeighbourCall& call, std::int64_t element_bytes) {
  constexpr std::int64_t kSlice = kHeldPieces * 16;
  const std::int64_t row = call.width * element_bytes;
  return row % kSlice == 0 && aligned(16, {call.x, call.y}) && held_bytes(call.nodes) <= kHeldBytes &&
         row / kSlice * call.members.count >= kFewestHeldBlocks;
}

int run_held_neighbours_f32(const NeighbourCall& call, Stream stream) {
  return run_held_neighbours<float>(call, stream);
}
int run_held_neighbours_bf16(const NeighbourCall& call, Stream stream) {
  return run_held_neighbours<__nv_bfloat16>(call, stream);
}

}  // namespace norma::cuda
