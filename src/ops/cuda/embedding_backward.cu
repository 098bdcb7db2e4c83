// dtable[v] = sum of dy[r] over the rows with ids[r] = v, without atomics: a block owns a few ids and a tile of
// columns. It walks over all ids in stretches, gathers its own rows of a stretch in their order, and adds them to its
// lines. An id that is rare in a stretch is one warp's; one that is frequent is shared by all warps, each with every
// kWarps-th row, and their sums are added in order.
#include "device/cuda/device.cuh"
#include "norma/ops/embedding.h"

namespace norma {
namespace {

constexpr int kScatterWarps = 16, kScatterThreads = kScatterWarps * cuda::kWarp;
constexpr int kScatterPerThread = 8, kScatterStretch = kScatterThreads * kScatterPerThread;  // rows
constexpr int kScatterIds = 128;                                                             // of a block, at most
constexpr int kScatterRare = cuda::kWarp;                                                    // rows
constexpr int kScatterAhead = 4;                                                             // rows read at once

struct ScatterCall {
  cuda::Members members = {};
  std::int64_t ids = 0, dy = 0, out = 0;
  std::int64_t vocabulary = 0, rows = 0, width = 0;
  int ids_per_block = 0;
};

template <int V>
struct ScatterShared {
  std::uint32_t list[kScatterStretch];  // in order of rows: row within the stretch, times kScatterIds, plus id
  int counts[kScatterIds];              // rows of each id
  int warp_counts[kScatterWarps];
  float sums[kScatterWarps][cuda::kWarp * V];
};

// The block's entries of the stretch from `begin` on; returns how many there are.
template <int V>
__device__ __forceinline__ int gather_stretch(const ScatterCall& call, const std::int32_t* ids, std::int64_t first_id,
                                              int own, std::int64_t begin, ScatterShared<V>& shared) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % cuda::kWarp, warp = thread / cuda::kWarp;
  for (int i = thread; i < own; i += kScatterThreads) shared.counts[i] = 0;
  std::int64_t id[kScatterPerThread];
  int found = 0;
#pragma unroll
  for (int j = 0; j < kScatterPerThread; ++j) {
    const std::int64_t row = begin + thread * kScatterPerThread + j;
    id[j] = row < call.rows ? ids[row] - first_id : -1;
    found += id[j] >= 0 && id[j] < own ? 1 : 0;
  }
  int before = found;  // matches up to this lane, then up to the one before
#pragma unroll
  for (int distance = 1; distance < cuda::kWarp; distance <<= 1) {
    const int left = __shfl_up_sync(cuda::kAll, before, distance);
    if (lane >= distance) before += left;
  }
  if (lane == cuda::kWarp - 1) shared.warp_counts[warp] = before;
  before -= found;
  __syncthreads();
  int total = 0;
#pragma unroll
  for (int w = 0; w < kScatterWarps; ++w) {
    if (w == warp) before += total;
    total += shared.warp_counts[w];
  }
#pragma unroll
  for (int j = 0; j < kScatterPerThread; ++j) {
    if (id[j] < 0 || id[j] >= own) continue;
    shared.list[before++] =
        static_cast<std::uint32_t>((thread * kScatterPerThread + j) * kScatterIds) + static_cast<std::uint32_t>(id[j]);
    atomicAdd(&shared.counts[id[j]], 1);  // whole numbers: any order
  }
  __syncthreads();
  return total;
}

// sum += the rows whose places in the stretch lane k holds for k < count, at the lane's columns.
template <int V>
__device__ __forceinline__ void add_listed(const float* dy, std::int64_t width, int row, int count, bool has,
                                           float (&sum)[V]) {
  for (int k = 0; k < count; k += kScatterAhead) {
    float v[kScatterAhead][V];
#pragma unroll
    for (int j = 0; j < kScatterAhead; ++j) {
      const int from = __shfl_sync(cuda::kAll, row, k + j < count ? k + j : 0);
#pragma unroll
      for (int c = 0; c < V; ++c) v[j][c] = 0.0f;
      if (has && k + j < count) cuda::load<float, V>(dy + from * width, v[j]);
    }
#pragma unroll
    for (int j = 0; j < kScatterAhead; ++j) {
#pragma unroll
      for (int c = 0; c < V; ++c) sum[c] += v[j][c];
    }
  }
}

// Entries [begin, length) of the list, every step-th stretch of kWarp of them, that are of this id.
template <int V>
__device__ __forceinline__ void add_entries(const ScatterShared<V>& shared, int id, int begin, int step, int length,
                                            const float* dy, std::int64_t width, bool has, float (&sum)[V]) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  for (int i = begin; i < length; i += step) {
    const std::uint32_t entry = i + lane < length ? shared.list[i + lane] : kScatterIds - 1u;
    const bool mine = i + lane < length && static_cast<int>(entry % kScatterIds) == id;
    const unsigned matches = __ballot_sync(cuda::kAll, mine);
    if (matches == 0) continue;
    // Lane k takes the k-th match.
    const int count = __popc(matches), source = static_cast<int>(__fns(matches, 0, lane + 1));
    const int row = static_cast<int>(__shfl_sync(cuda::kAll, entry, lane < count ? source : 0) / kScatterIds);
    add_listed<V>(dy, width, row, count, has, sum);
  }
}

template <int V>
__global__ void __launch_bounds__(kScatterThreads) scatter_kernel(const __grid_constant__ ScatterCall call) {
  __shared__ ScatterShared<V> shared;
  if (cuda::skipped(call.members, blockIdx.z)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp, warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const std::int64_t first_id = std::int64_t{blockIdx.x} * call.ids_per_block, left = call.vocabulary - first_id;
  const int own = static_cast<int>(left < call.ids_per_block ? left : call.ids_per_block);
  const std::int64_t column = (std::int64_t{blockIdx.y} * cuda::kWarp + lane) * V;
  const bool has = column < call.width;
  const std::int32_t* const ids = cuda::at<const std::int32_t>(member, call.ids);
  const float* const dy = cuda::at<const float>(member, call.dy) + column;
  float* const out = cuda::at<float>(member, call.out) + first_id * call.width + column;
  // Line `id` is read and written by warp id % kScatterWarps alone.
  const float zeros[V] = {};
  for (int id = warp; id < own && has; id += kScatterWarps) cuda::store<float, V>(out + id * call.width, zeros);
  const auto add_to_line = [&](int id, const float(&sum)[V]) {
    if (!has) return;
    float line[V];
    cuda::load<float, V>(out + id * call.width, line);
#pragma unroll
    for (int c = 0; c < V; ++c) line[c] += sum[c];
    cuda::store<float, V>(out + id * call.width, line);
  };
  for (std::int64_t begin = 0; begin < call.rows; begin += kScatterStretch) {
    const int length = gather_stretch<V>(call, ids, first_id, own, begin, shared);
    const float* const stretch = dy + begin * call.width;
    for (int id = warp; id < own; id += kScatterWarps) {
      const int count = shared.counts[id];
      if (count == 0 || count > kScatterRare) continue;
      float sum[V] = {};
      add_entries<V>(shared, id, 0, cuda::kWarp, length, stretch, call.width, has, sum);
      add_to_line(id, sum);
    }
    for (int id = 0; id < own; ++id) {
      if (shared.counts[id] <= kScatterRare) continue;  // for all threads alike
      float sum[V] = {};
      add_entries<V>(shared, id, warp * cuda::kWarp, kScatterThreads, length, stretch, call.width, has, sum);
#pragma unroll
      for (int c = 0; c < V; ++c) shared.sums[warp][lane * V + c] = sum[c];
      __syncthreads();
      if (warp == id % kScatterWarps) {
#pragma unroll
        for (int c = 0; c < V; ++c) {
          sum[c] = 0.0f;
          for (int w = 0; w < kScatterWarps; ++w) sum[c] += shared.sums[w][lane * V + c];
        }
        add_to_line(id, sum);
      }
      __syncthreads();
    }
    __syncthreads();  // the list is written again
  }
}

}  // namespace

cuda::Program cuda_kernel(const EmbeddingBackward& op, Types in, Types) {
  // Many blocks where there are few ids; where there are many, fewer walks over the rows.
  int ids_per_block = 1;
  while (ids_per_block < kScatterIds && op.vocabulary() / (2 * ids_per_block) >= 256) ids_per_block *= 2;
  const ScatterCall shape{.vocabulary = op.vocabulary(),
                          .rows = in[0].shape.elements(),
                          .width = in[1].shape.channels(),
                          .ids_per_block = ids_per_block};
  return {.launch = [shape](const cuda::Call& call) {
    ScatterCall told = shape;
    told.members = call.members;
    told.ids = call.in(0);
    told.dy = call.in(1);
    told.out = call.out(0);
    const auto grid = [&](int v) {
      return dim3(cuda::blocks_for(told.vocabulary, told.ids_per_block), cuda::blocks_for(told.width, cuda::kWarp * v),
                  static_cast<unsigned>(call.members.count));
    };
    if ((told.dy | told.out) % 16 == 0 && told.width % 4 == 0) {
      scatter_kernel<4><<<grid(4), kScatterThreads, 0, call.stream>>>(told);
    } else {
      scatter_kernel<1><<<grid(1), kScatterThreads, 0, call.stream>>>(told);
    }
    return cuda::launched();
  }};
}

}  // namespace norma
