// dtable[v] = sum of dy[r] over the rows with ids[r] = v, without atomics on sums. First the rows are put in the order
// of their ids, rows of one id in their own order: a block has a few ids, counts the rows of smaller ones, and lists
// its own. Then a warp adds up the rows of an id; an id of many rows has all warps of a block, each with some of the
// rows, and their sums are added in order. What the sums are added to may lie where they go: ids without rows are then
// left as they are.
#include <algorithm>

#include "norma/ops/embedding.h"
#include "ops/cuda/map.cuh"
#include "ops/cuda/quads.cuh"

namespace norma {
namespace {

constexpr int kOrderWarps = 16, kOrderThreads = kOrderWarps * cuda::kWarp;
constexpr int kOrderPerThread = 8, kOrderStretch = kOrderThreads * kOrderPerThread;  // rows that are listed at once
constexpr int kOrderIds = 128;                                                       // of a block, at most
constexpr int kSumWarps = 8;                                                         // of a block, and ids
constexpr int kFewRows = 64;                                                         // of an id: one warp's
constexpr int kRowsAtOnce = 4;                                                       // that a warp reads

struct ScatterCall {
  cuda::Members members = {};
  std::int64_t ids = 0, dy = 0, out = 0;
  std::int64_t onto = cuda::kAbsent;   // f32 [vocabulary, width], added
  std::int64_t order = 0, starts = 0;  // scratch, i32: rows by id; where those of an id begin [vocabulary + 1]
  std::int64_t width = 0;
  std::int32_t rows = 0, vocabulary = 0, ids_per_block = 0;
};

struct OrderShared {
  std::uint32_t list[kOrderStretch];  // the block's rows of a stretch, in their order: place, times kOrderIds, plus id
  int cursors[kOrderIds];             // rows of each id, then where the next one goes
  int warps[kOrderWarps];
};

__device__ __forceinline__ int sum_of_warp(int value) {
#pragma unroll
  for (int distance = cuda::kWarp / 2; distance > 0; distance >>= 1)
    value += __shfl_xor_sync(cuda::kAll, value, distance);
  return value;
}

// The sum up to this lane, itself included.
__device__ __forceinline__ int sum_up_to_lane(int value) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
#pragma unroll
  for (int distance = 1; distance < cuda::kWarp; distance <<= 1) {
    const int left = __shfl_up_sync(cuda::kAll, value, distance);
    if (lane >= distance) value += left;
  }
  return value;
}

// Counts the rows of each of the block's ids, and turns counts into places behind the rows of smaller ids. Ids outside
// the table count nowhere.
__device__ __forceinline__ void place_ids(const ScatterCall& call, const std::int32_t* ids, std::int32_t* starts,
                                          std::int32_t first, std::int32_t own, OrderShared& shared) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % cuda::kWarp, warp = thread / cuda::kWarp;
  for (int i = thread; i < kOrderIds; i += kOrderThreads) shared.cursors[i] = 0;
  __syncthreads();
  int below = 0;
  for (std::int32_t row = thread; row < call.rows; row += kOrderThreads) {
    const std::int32_t id = ids[row];
    if (id < 0 || id >= first + own) continue;
    if (id < first) {
      ++below;
    } else {
      atomicAdd(&shared.cursors[id - first], 1);  // whole numbers: any order
    }
  }
  below = sum_of_warp(below);
  if (lane == 0) shared.warps[warp] = below;
  __syncthreads();
  if (warp == 0) {
    constexpr int kPerLane = kOrderIds / cuda::kWarp;
    below = sum_of_warp(lane < kOrderWarps ? shared.warps[lane] : 0);
    int counts[kPerLane], mine = 0;
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) mine += counts[j] = shared.cursors[lane * kPerLane + j];
    int place = below + sum_up_to_lane(mine) - mine;
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      const int i = lane * kPerLane + j;
      shared.cursors[i] = place;
      if (i < own) starts[first + i] = place;
      place += counts[j];
      if (i == own - 1 && first + own == call.vocabulary) starts[call.vocabulary] = place;
    }
  }
  __syncthreads();
}

// The block's rows among those from `begin` on, in their order; returns how many there are.
__device__ __forceinline__ int list_stretch(const ScatterCall& call, const std::int32_t* ids, std::int32_t first,
                                            std::int32_t own, std::int32_t begin, OrderShared& shared) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % cuda::kWarp, warp = thread / cuda::kWarp;
  std::int32_t id[kOrderPerThread];
  int found = 0;
#pragma unroll
  for (int j = 0; j < kOrderPerThread; ++j) {
    const std::int32_t row = begin + thread * kOrderPerThread + j;
    const std::int32_t any = row < call.rows ? ids[row] : -1;
    id[j] = any >= first && any < first + own ? any - first : -1;
    found += id[j] >= 0 ? 1 : 0;
  }
  const int up_to = sum_up_to_lane(found);
  if (lane == cuda::kWarp - 1) shared.warps[warp] = up_to;
  __syncthreads();
  int place = up_to - found, total = 0;
#pragma unroll
  for (int w = 0; w < kOrderWarps; ++w) {
    if (w == warp) place += total;
    total += shared.warps[w];
  }
#pragma unroll
  for (int j = 0; j < kOrderPerThread; ++j) {
    if (id[j] < 0) continue;
    shared.list[place++] = static_cast<std::uint32_t>((thread * kOrderPerThread + j) * kOrderIds + id[j]);
  }
  __syncthreads();
  return total;
}

// One warp: each listed row goes behind the earlier ones of its id.
__device__ __forceinline__ void put_in_order(std::int32_t* order, std::int32_t begin, int length, OrderShared& shared) {
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = 0; i < length; i += cuda::kWarp) {
    const bool has = i + lane < length;
    const std::uint32_t entry = has ? shared.list[i + lane] : 0u;
    const int id = has ? static_cast<int>(entry % kOrderIds) : -1;
    const unsigned alike = __match_any_sync(cuda::kAll, id);
    const int before = __popc(alike & ((1u << lane) - 1u));
    const int place = has ? shared.cursors[id] + before : 0;
    __syncwarp();
    if (has) order[place] = begin + static_cast<std::int32_t>(entry / kOrderIds);
    if (has && before == 0) shared.cursors[id] = place + __popc(alike);
    __syncwarp();
  }
}

__global__ void __launch_bounds__(kOrderThreads) order_kernel(const __grid_constant__ ScatterCall call) {
  __shared__ OrderShared shared;
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int32_t* const ids = cuda::at<const std::int32_t>(member, call.ids);
  std::int32_t* const order = cuda::at<std::int32_t>(member, call.order);
  const auto first = static_cast<std::int32_t>(blockIdx.x) * call.ids_per_block;
  const std::int32_t left = call.vocabulary - first, own = left < call.ids_per_block ? left : call.ids_per_block;
  place_ids(call, ids, cuda::at<std::int32_t>(member, call.starts), first, own, shared);
  for (std::int32_t begin = 0; begin < call.rows; begin += kOrderStretch) {
    const int length = list_stretch(call, ids, first, own, begin, shared);
    if (threadIdx.x < cuda::kWarp) put_in_order(order, begin, length, shared);
    __syncthreads();  // the list is written again
  }
}

// sum += the rows order[from], order[from + step], ... below `end`, kRowsAtOnce neighbours at a time.
template <typename T, int V>
__device__ __forceinline__ void add_ordered_rows(const T* dy, std::int64_t width, const std::int32_t* order, int from,
                                                 int step, int end, bool has, float (&sum)[V]) {
  for (int k = from; k < end; k += step) {
    float v[kRowsAtOnce][V];
#pragma unroll
    for (int j = 0; j < kRowsAtOnce; ++j) {
#pragma unroll
      for (int c = 0; c < V; ++c) v[j][c] = 0.0f;
      if (has && k + j < end) cuda::load<T, V>(dy + std::int64_t{order[k + j]} * width, v[j]);
    }
#pragma unroll
    for (int j = 0; j < kRowsAtOnce; ++j) {
#pragma unroll
      for (int c = 0; c < V; ++c) sum[c] += v[j][c];
    }
  }
}

template <typename T, int V>
__global__ void __launch_bounds__(kSumWarps* cuda::kWarp)
    ordered_sums_kernel(const __grid_constant__ ScatterCall call) {
  __shared__ float parts[kSumWarps][cuda::kWarp * V];
  __shared__ int begins[kSumWarps + 1];
  if (cuda::skipped(call.members, blockIdx.z)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp, warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const auto first = static_cast<std::int32_t>(blockIdx.x) * kSumWarps;
  const std::int64_t column = (std::int64_t{blockIdx.y} * cuda::kWarp + lane) * V;
  const bool has = column < call.width;
  const std::int32_t* const order = cuda::at<const std::int32_t>(member, call.order);
  const std::int32_t* const starts = cuda::at<const std::int32_t>(member, call.starts);
  const T* const dy = cuda::at<const T>(member, call.dy) + column;
  const std::int64_t to = std::int64_t{first} * call.width + column;
  float* const out = cuda::at<float>(member, call.out) + to;
  const float* const base = call.onto < 0 ? nullptr : cuda::at<const float>(member, call.onto) + to;
  if (threadIdx.x <= kSumWarps) {
    const std::int32_t id = first + static_cast<std::int32_t>(threadIdx.x);
    begins[threadIdx.x] = starts[id < call.vocabulary ? id : call.vocabulary];
  }
  __syncthreads();
  const int begin = begins[warp], end = begins[warp + 1];
  const bool stays = call.onto == call.out && begin == end;
  if (first + warp < call.vocabulary && end - begin <= kFewRows && !stays) {
    float before[V] = {}, sum[V] = {};
    if (has && base != nullptr) cuda::load_quads<V>(base + warp * call.width, before);  // on its way as order is
    add_ordered_rows<T, V>(dy, call.width, order, begin, kRowsAtOnce, end, has, sum);
#pragma unroll
    for (int c = 0; c < V; ++c) sum[c] += before[c];
    if (has) cuda::store_quads<V>(out + warp * call.width, sum);
  }
  for (int id = 0; id < kSumWarps; ++id) {
    if (begins[id + 1] - begins[id] <= kFewRows) continue;  // for all threads alike
    float sum[V] = {};
    add_ordered_rows<T, V>(dy, call.width, order, begins[id] + warp * kRowsAtOnce, kSumWarps * kRowsAtOnce,
                           begins[id + 1], has, sum);
#pragma unroll
    for (int c = 0; c < V; ++c) parts[warp][lane * V + c] = sum[c];
    __syncthreads();
    if (warp == 0 && has) {
#pragma unroll
      for (int c = 0; c < V; ++c) {
        for (int w = 1; w < kSumWarps; ++w) sum[c] += parts[w][lane * V + c];
      }
      float before[V] = {};
      if (base != nullptr) cuda::load_quads<V>(base + id * call.width, before);
#pragma unroll
      for (int c = 0; c < V; ++c) sum[c] += before[c];
      cuda::store_quads<V>(out + id * call.width, sum);
    }
    __syncthreads();
  }
}

template <typename T>
int add_up(const ScatterCall& call, cuda::Stream stream) {
  constexpr int kV = cuda::kWide<T>, kThreads = kSumWarps * cuda::kWarp;
  const auto grid = [&](int v) {
    return dim3(cuda::blocks_for(call.vocabulary, kSumWarps), cuda::blocks_for(call.width, cuda::kWarp * v),
                static_cast<unsigned>(call.members.count));
  };
  const std::int64_t base = call.onto < 0 ? 0 : call.onto;
  if ((call.dy | call.out | base) % 16 == 0 && call.width % kV == 0) {
    ordered_sums_kernel<T, kV><<<grid(kV), kThreads, 0, stream>>>(call);
  } else {
    ordered_sums_kernel<T, 1><<<grid(1), kThreads, 0, stream>>>(call);
  }
  return cuda::launched();
}

}  // namespace

cuda::Program cuda_kernel(const EmbeddingBackward& op, Types in, Types) {
  constexpr std::int64_t kInteger = sizeof(std::int32_t), kBlocks = 8;  // of a small vocabulary
  const std::int64_t rows = in[0].shape.elements(), vocabulary = op.vocabulary();
  const bool adds = in.size() == 3, narrow = in[1].dtype == DType::bf16;
  const std::int64_t order_bytes = cuda::round_up(rows * kInteger, 256);
  const ScatterCall shape{.width = in[1].shape.channels(),
                          .rows = static_cast<std::int32_t>(rows),
                          .vocabulary = static_cast<std::int32_t>(vocabulary),
                          .ids_per_block = static_cast<std::int32_t>(std::clamp<std::int64_t>(
                              cuda::divide_up(vocabulary, kBlocks), 1, std::int64_t{kOrderIds}))};
  return {.launch =
              [=](const cuda::Call& call) {
                ScatterCall told = shape;
                told.members = call.members;
                told.ids = call.in(0);
                told.dy = call.in(1);
                told.out = call.out(0);
                if (adds) told.onto = call.in(2);
                told.order = call.scratch;
                told.starts = call.scratch + order_bytes;
                const auto members = static_cast<unsigned>(call.members.count);
                const dim3 blocks(cuda::blocks_for(told.vocabulary, told.ids_per_block), members);
                order_kernel<<<blocks, kOrderThreads, 0, call.stream>>>(told);
                if (const int error = cuda::launched(); error != 0) return error;
                return narrow ? add_up<__nv_bfloat16>(told, call.stream) : add_up<float>(told, call.stream);
              },
          .scratch_bytes = order_bytes + (vocabulary + 1) * kInteger};
}

}  // namespace norma
