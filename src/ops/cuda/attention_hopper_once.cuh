// The backward pass of long sequences with wgmma in which probabilities are computed once. A block has a head and goes
// over its keys in passes of three tiles, one to each warpgroup; in a pass the queries go by, tile after tile. P^T and
// dS^T of a warpgroup's 64 keys stay in its registers for dv and dk. It leaves dS^T in shared memory too, where the
// warpgroup whose turn it is multiplies dS of all three by the keys. Between passes, sums of dq are in memory: the same
// thread writes and reads each of them, so they have one order and need no atomics.
//
// The copy engine brings tiles, told by one thread. A warpgroup adds to dq one step late, which leaves the others time
// to write dS, so none waits for all others at every step, and products of one run beside exponentials of another.
#pragma once

#include "ops/cuda/attention_hopper_once_tiles.cuh"
#include "ops/cuda/attention_hopper_whole_gradients.cuh"

namespace norma::cuda::attention {

// P^T and dS^T of a warp's rows are 0 from row `rows` on, from column `columns` on and where column - row < least.
__device__ __forceinline__ void hide_unseen(Accumulator& p, Accumulator& ds, int least, int rows, int columns) {
  const int row = MatrixLanes::g(), column = 2 * MatrixLanes::t();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int begin = least + row + half * 8 - column, end = row + half * 8 < rows ? columns - column : 0;
#pragma unroll
    for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (n * 8 + i < begin || n * 8 + i >= end) p[0][n][2 * half + i] = ds[0][n][2 * half + i] = 0.0f;
      }
    }
  }
}

// A thread's part of a tile of sums between passes: 16 bytes of every kGroup * 16.
__device__ __forceinline__ void load_sums(Accumulator& c, const float4* from) {
#pragma unroll
  for (int n = 0; n < kSide / 8; ++n) {
    const float4 x = __ldcg(from + n * kGroup);
    c[0][n][0] = x.x, c[0][n][1] = x.y, c[0][n][2] = x.z, c[0][n][3] = x.w;
  }
}
__device__ __forceinline__ void store_sums(float4* to, const Accumulator& c) {
#pragma unroll
  for (int n = 0; n < kSide / 8; ++n) {
    __stcg(to + n * kGroup, make_float4(c[0][n][0], c[0][n][1], c[0][n][2], c[0][n][3]));
  }
}

// Everything once more, for a head in which 0 times what is hidden was NaN, as in the other passes.
template <class Math>
__device__ __forceinline__ void once_carefully(const AttentionCall& call, unsigned char* memory) {
  constexpr int kRows = kOnceWarps * 16;
  const int head = static_cast<int>(blockIdx.x);
  const int query_blocks = (call.queries + kRows - 1) / kRows, key_blocks = (call.keys + kRows - 1) / kRows;
  for (int i = 0; i < query_blocks; ++i) {
    dq_block<Math, kSide, 1, 32>(call, Access::chunks, memory, head * query_blocks + i);
    __syncthreads();
  }
  for (int i = 0; i < key_blocks; ++i) {
    dkv_block<Math, kSide, 1, 32>(call, Access::chunks, memory, head * key_blocks + i);
    __syncthreads();
  }
}

template <class Math>
__global__ void __launch_bounds__(kOnceThreads, 1) hopper_once_kernel(const __grid_constant__ OnceBackward all) {
#if __CUDA_ARCH__ >= 900  // on older cards it is never run
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ std::uint64_t barriers[2 * (kKeySlots + kQuerySlots + kScoreSlots)];
  const AttentionCall& call = all.call;
  std::byte* const member = member_of(call.members);
  if (member == nullptr) return;
  const OncePlan plan(call);
  const bool causal = plan.causal;
  const int thread = static_cast<int>(threadIdx.x), warp = thread % kGroup / kWarp * 16;
  const int group = __shfl_sync(kAll, thread / kGroup, 0);
  const bool leads = lane_of() == 0;
  HopperTile* const tiles = aligned_tiles(memory);
  const unsigned tiles_at = descriptor(tiles);
  float* const lse = reinterpret_cast<float*>(tiles + kOncePlaces * kSide * kLine);
  float* const delta = lse + kMostOnceRows;
  float* const sums =
      at<float>(member, all.sums) + static_cast<std::int64_t>(blockIdx.x) * plan.query_tiles * kSumsOfTile;
  const Ring<kKeySlots> keys{shared_address(barriers)};
  const Ring<kQuerySlots> queries{keys.barriers + 16 * kKeySlots};
  const Ring<kScoreSlots> scores{queries.barriers + 16 * kQuerySlots};
  const OnceBringer bringer(all, plan, shared_address(tiles), keys, queries);
  if (thread == 0) {
    keys.make(1, kOnceWarps);
    queries.make(1, kOnceWarps);
    scores.make(kOnceWarps, kGroup / kWarp);  // emptied by the warpgroup that adds it to dq
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  {
    const float* const its_lse = query_numbers(call, member, call.lse, plan.sample, plan.head);
    const float* const its_delta = query_numbers(call, member, call.scratch, plan.sample, plan.head);
    for (int i = thread; i < plan.query_tiles * kSide; i += kOnceThreads) {
      lse[i] = i < call.queries ? its_lse[i] * kLog2E : 0.0f;
      delta[i] = i < call.queries ? its_delta[i] : 0.0f;
    }
  }
  __syncthreads();
  if (group == 0) {
    bringer.bring_keys(0);
    for (int i = 0; i < kAhead; ++i) bringer.bring_queries(i, 0, i);
  }

  bool bad = false;
  int step = 0;  // of all passes
#pragma unroll 1
  for (int pass = 0; pass < plan.passes; ++pass) {
    const int first_query = plan.first_query(pass), key_tile = pass * kOnceGroups + group;
    const unsigned keys_at = tiles_at + keys.slot(pass) * kKeyPlaces * kNextTile;
    Accumulator dk, dv;
    clear(dk);
    clear(dv);
    keys.wait_until_full(pass);
#pragma unroll 1
    for (int query = first_query; query < plan.query_tiles; ++query, ++step) {
      const unsigned q_at = tiles_at + (kFirstQueryPlace + 2 * queries.slot(step)) * kNextTile;
      const unsigned dc_at = q_at + kNextTile;
      if (pass > 0 && query % kOnceGroups == group) {  // which it will add to in the next step
        asm volatile("prefetch.global.L2 [%0];" ::"l"(sums + query * kSumsOfTile + thread % kGroup * 32));
      }
      queries.wait_until_full(step);
      if (group < plan.seen(pass, query)) {
        Accumulator p, dp;
        Fragment held_p, held_ds;
        settle(dk);
        settle(dv);
        begin_products();
        issue_rows(p, keys_at + group * kNextTile, q_at);
        commit_products();
        issue_rows(dp, keys_at + (kOnceGroups + group) * kNextTile, dc_at);
        commit_products();
        wait_for_products<1>();
        settle(p);
        transposed_exponentials(p, call.scale * kLog2E, lse + query * kSide);
        wait_for_products<0>();
        settle(dp);
        transposed_gradients(p, dp, delta + query * kSide);
        const bool crossed = causal && query == key_tile;
        if (crossed || (query + 1) * kSide > call.queries || (key_tile + 1) * kSide > call.keys) {
          hide_unseen(p, dp, crossed ? warp : -kSide, call.keys - key_tile * kSide - warp,
                      call.queries - query * kSide);
        }
        pack_fragment(held_p, p);
        begin_products();
        issue_held(dv, held_p, dc_at);
        commit_products();
        pack_fragment(held_ds, dp);
        scores.wait_until_empty(step);
        store_fragment(tiles + (kFirstScorePlace + scores.slot(step) * kOnceGroups + group) * kSide * kLine, warp, 0,
                       held_ds);
        publish();
        begin_products();
        issue_held(dk, held_ds, q_at);
        commit_products();
      } else {
        scores.wait_until_empty(step);
      }
      __syncwarp();
      if (leads) product::arrive(scores.full(step));

      // dq of the tile of queries before; at the end of a pass, of this one too.
      const int last_due = query + 1 == plan.query_tiles ? query : query - 1;
#pragma unroll 1
      for (int due = max(query - 1, first_query); due <= last_due; ++due) {
        if (due % kOnceGroups != group) continue;
        const int due_step = step - (query - due);
        float4* const its_sums = reinterpret_cast<float4*>(sums + due * kSumsOfTile) + thread % kGroup;
        Accumulator dq;
        if (pass > 0) {
          load_sums(dq, its_sums);
        } else {
          clear(dq);
        }
        wait_for_products<0>();
        settle(dk);
        settle(dv);
        scores.wait_until_full(due_step);
        settle(dq);
        const unsigned ds_at = tiles_at + (kFirstScorePlace + scores.slot(due_step) * kOnceGroups) * kNextTile;
        const int seen = plan.seen(pass, due);
#pragma unroll 1
        for (int tile = 0; tile < seen; ++tile) {
          begin_products();
          issue_columns(dq, ds_at + tile * kNextTile, keys_at + tile * kNextTile);
          commit_products();
        }
        wait_for_products<0>();
        settle(dq);
        if (leads) product::arrive(scores.empty(due_step));
        if (plan.is_last_pass_of(pass, due)) {
          bad = bad || has_nan(dq);
          store_rows(query_rows<HopperTile>(call, member, call.dq, plan.sample, plan.head), due * kSide + warp,
                     call.queries, call.queries, kSide, dq, call.scale, call.scale);
        } else {
          store_sums(its_sums, dq);
        }
      }
      wait_for_products<0>();
      settle(dk);
      settle(dv);
      if (leads) product::arrive(queries.empty(step));
      if (group == 0) {
        if (query == first_query) bringer.bring_keys(pass + 1);
        bringer.bring_queries(step + kAhead, pass, query + kAhead);
      }
    }
    if (leads) product::arrive(keys.empty(pass));
    if (key_tile < plan.key_tiles) {
      const int first = key_tile * kSide + warp;
      bad = bad || has_nan(dk) || has_nan(dv);
      store_rows(key_rows<HopperTile>(call, member, call.dk, plan.sample, plan.head), first, call.keys, call.keys,
                 kSide, dk, call.scale, call.scale);
      store_rows(key_rows<HopperTile>(call, member, call.dv, plan.sample, plan.head), first, call.keys, call.keys,
                 kSide, dv, 1.0f, 1.0f);
    }
  }
  if (causal && __syncthreads_or(bad) != 0) once_carefully<Math>(call, memory);
#endif
}

}  // namespace norma::cuda::attention
