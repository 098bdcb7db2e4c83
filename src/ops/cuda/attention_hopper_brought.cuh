// The forward pass of attention_hopper_forward.cuh for heads of 64 without lengths. One warp has the copy engine bring
// tiles of queries, keys and values, of the next rows too while the last ones are being written; four warpgroups with
// 64 queries each multiply, neither waiting for the other, and take the exponentials of a tile while its predecessor is
// multiplied by the values. Blocks stay and walk over all members, samples, heads and rows.
#pragma once

#include "ops/cuda/attention_hopper_forward.cuh"
#include "ops/cuda/hopper_product.cuh"

namespace norma::cuda::attention {

constexpr int kBroughtGroups = 4, kBroughtRows = kBroughtGroups * kSide, kMultiplying = kBroughtGroups * kGroup;
constexpr int kBroughtThreads = kMultiplying + kGroup;  // registers are given by warpgroup: most of the last is idle
constexpr int kSlots = 16;                              // of the ring of tiles of keys and of values
constexpr int kQueryTiles = 2 * kBroughtGroups;         // of two turns
constexpr int kBroughtTiles = kQueryTiles + kSlots;     // of 64 rows each
constexpr int kMostTurns = 1024;                        // of a block
// Registers of a thread: all alike, of the one that brings, and of those that multiply.
constexpr int kRegisters = 96, kRegistersToBring = 32, kRegistersToMultiply = 112;
static_assert(kRegistersToBring + kBroughtGroups * kRegistersToMultiply <= (kBroughtGroups + 1) * kRegisters);

// Maps are [member, sample, row, column], boxes of 64 rows of a head.
struct BroughtForward {
  AttentionCall call;         // members in order
  bool from_the_end = false;  // the walk begins with the last member
  int blocks = 0, turns = 0;  // of so many queries in a head; of all
  CUtensorMap q, k, v;
};

__device__ __forceinline__ void bring_rows(unsigned to, const CUtensorMap& map, int column, int row, int sample,
                                           int member, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(sample), "r"(member), "r"(barrier)
      : "memory");
}

// Which queries of which head a block has in a turn. A block has many keys to see in one turn and few in the next.
struct BroughtPlace {
  int index, member, sample, head, first, tiles;
  __device__ __forceinline__ BroughtPlace(const BroughtForward& all, int turn) {
    const AttentionCall& call = all.call;
    index = turn * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
    const int block = index % all.blocks, pair = index / all.blocks;
    first = ((turn & 1) != 0 ? block : all.blocks - 1 - block) * kBroughtRows;
    head = pair % call.heads;
    sample = pair / call.heads % call.batch;
    member = pair / call.heads / call.batch;
    if (all.from_the_end) member = call.members.count - 1 - member;
    tiles = tiles_until(call, first + kBroughtRows);
  }
  // Tiles of keys that queries before `end` see.
  __device__ __forceinline__ static int tiles_until(const AttentionCall& call, int end) {
    return ((call.mask == KeyMask::causal ? min(call.keys, end) : call.keys) + kSide - 1) / kSide;
  }
};

// Barriers by address; which tile is the next follows from how many there were.
struct BroughtMemory {
  unsigned tiles, q_full, q_empty, full, empty;
  __device__ __forceinline__ unsigned q_tile(int count) const {
    return tiles + (count & 1) * kBroughtGroups * kTileBytes;
  }
  __device__ __forceinline__ static int slot(int count) { return count % kSlots; }
  __device__ __forceinline__ static unsigned phase(int count) { return count / kSlots & 1; }
  __device__ __forceinline__ unsigned tile(int at) const { return tiles + (kQueryTiles + at) * kTileBytes; }
};

// One thread. Tiles come in the order in which they are needed: keys one tile ahead of values.
__device__ __forceinline__ void bring_turns(const BroughtForward& all, const BroughtMemory& memory) {
  const AttentionCall& call = all.call;
  int count = 0, queries = 0;
  for (int turn = 0;; ++turn) {
    const BroughtPlace place(all, turn);
    if (place.index >= all.turns) return;
    if (skipped(call.members, place.member)) continue;
    const unsigned q_full = memory.q_full + 8 * (queries & 1);
    product::wait_for(memory.q_empty + 8 * (queries & 1), (queries / 2 & 1) ^ 1);
    product::arrive_expecting(q_full, kBroughtGroups * kTileBytes);
    for (int group = 0; group < kBroughtGroups; ++group) {
      bring_rows(memory.q_tile(queries) + group * kTileBytes, all.q, place.head * kSide, place.first + group * kSide,
                 place.sample, place.member, q_full);
    }
    ++queries;
    const int column = place.head / (call.heads / call.kv_heads) * kSide;
    const auto bring = [&](const CUtensorMap& map, int tile) {
      const int slot = BroughtMemory::slot(count);
      product::wait_for(memory.empty + 8 * slot, BroughtMemory::phase(count) ^ 1);
      product::arrive_expecting(memory.full + 8 * slot, kTileBytes);
      bring_rows(memory.tile(slot), map, column, tile * kSide, place.sample, place.member, memory.full + 8 * slot);
      ++count;
    };
    bring(all.k, 0);
    for (int tile = 0; tile < place.tiles; ++tile) {
      if (tile + 1 < place.tiles) bring(all.k, tile + 1);
      bring(all.v, tile);
    }
  }
}

// A warpgroup. Turns whose context has a NaN are marked in `again`.
__device__ __forceinline__ void multiply_turns(const BroughtForward& all, const BroughtMemory& memory,
                                               unsigned* again) {
  const AttentionCall& call = all.call;
  const int own_group = __shfl_sync(kAll, static_cast<int>(threadIdx.x) / kGroup, 0);  // seen to be uniform
  const bool causal = call.mask == KeyMask::causal;
  const float factor = call.scale * kLog2E;
  const auto product_of = [](unsigned tile) { return 0x10000u | (tile & 0x3ffffu) >> 4; };
  int count = 0, queries = 0;
  const auto take = [&] {  // the next tile of the ring, when it is there
    const int slot = BroughtMemory::slot(count);
    product::wait_for(memory.full + 8 * slot, BroughtMemory::phase(count));
    ++count;
    return slot;
  };
  const auto give_back = [&](int slot) {
    if (lane_of() == 0) product::arrive(memory.empty + 8 * slot);
  };
  for (int turn = 0;; ++turn) {
    const BroughtPlace place(all, turn);
    if (place.index >= all.turns) return;
    if (skipped(call.members, place.member)) continue;
    const int group = (turn & 1) != 0 ? kBroughtGroups - 1 - own_group : own_group;  // the last sees most keys
    const int group_first = place.first + group * kSide;
    const int warp_first = group_first + static_cast<int>(threadIdx.x) % kGroup / kWarp * 16;
    const int tiles = BroughtPlace::tiles_until(call, group_first + kSide);
    Accumulator scores, context;
    Fragment p;
    Softmax<MatrixLanes, 1> softmax;
    float correction[1][2];
    const auto exponentiate = [&](int tile) {
      const int key = tile * kSide, diagonal = key - warp_first;  // row - column >= diagonal: seen
      if ((causal && diagonal > 1 - kSide) || key + kSide > call.keys) {
        hide_scores<MatrixLanes>(scores, causal ? diagonal : -kSide, call.keys - key);
      }
      return softmax.exponentiate(scores, factor, correction);
    };
    const unsigned q = product_of(memory.q_tile(queries) + group * kTileBytes);
    product::wait_for(memory.q_full + 8 * (queries & 1), queries / 2 & 1);
    clear(context);
    settle(context);
    const int first_keys = take();
    begin_products();
    issue_rows(scores, q, product_of(memory.tile(first_keys)));
    commit_products();
    wait_for_products<0>();
    settle(scores);
    give_back(first_keys);
    exponentiate(0);
    pack_fragment(p, scores);
    for (int tile = 0; tile + 1 < tiles; ++tile) {
      const int keys = take();
      begin_products();
      issue_rows(scores, q, product_of(memory.tile(keys)));
      commit_products();
      const int values = take();
      begin_products();
      issue_held(context, p, product_of(memory.tile(values)));
      commit_products();
      wait_for_products<1>();
      settle(scores);
      give_back(keys);
      const bool corrects = exponentiate(tile + 1);
      wait_for_products<0>();
      settle(context);
      settle(scores);  // p, which the products read, is not written before
      give_back(values);
      softmax.correct(context, corrects, correction);
      pack_fragment(p, scores);
    }
    if (lane_of() == 0) product::arrive(memory.q_empty + 8 * (queries & 1));
    ++queries;
    if (tiles < place.tiles) give_back(take());  // keys for others
    const int last_values = take();
    begin_products();
    issue_held(context, p, product_of(memory.tile(last_values)));
    commit_products();
    wait_for_products<0>();
    settle(context);
    give_back(last_values);
    for (int left = 2 * tiles + 1; left < 2 * place.tiles; ++left) give_back(take());
    if (causal && __any_sync(kAll, has_nan(context)) && lane_of() == 0) atomicOr(again + turn / 32, 1u << turn % 32);
    store_context(call, base_of(call.members, place.member), place.sample, place.head, warp_first, call.keys, factor,
                  softmax, context);
  }
}

// A template only so that it is compiled where it is launched.
template <class Math>
__global__ void __launch_bounds__(kBroughtThreads, 1)
    hopper_brought_forward_kernel(const __grid_constant__ BroughtForward all) {
#if __CUDA_ARCH__ >= 900  // on older cards it is never run
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  __shared__ std::uint64_t barriers[4 + 2 * kSlots];
  __shared__ unsigned again[kMostTurns / 32];
  const unsigned first_barrier = shared_address(barriers);
  const BroughtMemory memory{.tiles = shared_address(aligned_tiles(shared_bytes)),
                             .q_full = first_barrier,
                             .q_empty = first_barrier + 16,
                             .full = first_barrier + 32,
                             .empty = first_barrier + 32 + 8 * kSlots};
  for (int i = static_cast<int>(threadIdx.x); i < kMostTurns / 32; i += kBroughtThreads) again[i] = 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      product::make_barrier(memory.q_full + 8 * i, 1);
      product::make_barrier(memory.q_empty + 8 * i, kMultiplying / kWarp);
    }
    for (int i = 0; i < kSlots; ++i) {
      product::make_barrier(memory.full + 8 * i, 1);
      product::make_barrier(memory.empty + 8 * i, kMultiplying / kWarp);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  // Registers that some give back are there for others only after all have met.
  const auto meet = [] { asm volatile("bar.sync 1, %0;" ::"n"(kBroughtThreads) : "memory"); };
  if (threadIdx.x >= kMultiplying) {
    shrink_registers<kRegistersToBring>();
    if (threadIdx.x == kMultiplying) bring_turns(all, memory);
    __syncwarp();
    meet();
    grow_registers<kRegisters>();
  } else {
    grow_registers<kRegistersToMultiply>();
    multiply_turns(all, memory, again);
    shrink_registers<kRegisters>();
    meet();
  }
  if (all.call.mask != KeyMask::causal) return;
  for (int turn = 0; turn < kMostTurns; ++turn) {  // NaN from what the mask hides, perhaps: all again with care
    if ((again[turn / 32] >> turn % 32 & 1) == 0) continue;
    const BroughtPlace place(all, turn);
    const int pair = place.index / all.blocks % (all.call.batch * all.call.heads);
    __syncthreads();
    forward_rows<Math, kSide, 1, 16>(all.call, Access::chunks, shared_bytes, base_of(all.call.members, place.member),
                                     (pair + 1) * all.blocks - 1 - place.first / kBroughtRows, kBroughtRows);
  }
#endif
}

}  // namespace norma::cuda::attention
