// The tiles of attention_hopper_once.cuh: where they are in shared memory, in which order they are needed, and how the
// copy engine brings them.
#pragma once

#include "ops/cuda/attention_wgmma.cuh"
#include "ops/cuda/hopper_product.cuh"

namespace norma::cuda::attention {

constexpr int kOnceGroups = 3, kOnceThreads = kOnceGroups * kGroup, kOnceWarps = kOnceThreads / kWarp;
constexpr int kKeySlots = 2, kQuerySlots = 4, kScoreSlots = 2;  // of the rings of tiles
constexpr int kMostOnceRows = 1536;                             // of queries
constexpr int kSumsOfTile = kSide * kSide;                      // of dq, f32
constexpr int kAhead = 3;                                       // steps that queries are brought before they are used
static_assert(kAhead < kQuerySlots);

// Tiles in shared memory: keys and values of a pass, queries and gradients by the context, dS^T. Then lse and delta.
constexpr int kKeyPlaces = 2 * kOnceGroups, kFirstQueryPlace = kKeySlots * kKeyPlaces;
constexpr int kFirstScorePlace = kFirstQueryPlace + 2 * kQuerySlots;
constexpr int kOncePlaces = kFirstScorePlace + kScoreSlots * kOnceGroups;
constexpr int kOnceBytes = kOncePlaces * kTileBytes + 1024 + 2 * kMostOnceRows * 4;

// Maps are [member, sample, row, column], boxes of 64 rows of a head.
struct OnceBackward {
  AttentionCall call;
  bool from_the_end = false;  // members of the call, as maps count them
  std::int64_t sums = 0;      // f32 [batch, heads, tiles of queries, kSumsOfTile]
  CUtensorMap q, k, v, dcontext;
};

// A ring of places, by how often one was taken. Its barriers say that a place is full, and that it is empty.
template <int kSlots>
struct Ring {
  unsigned barriers;
  __device__ __forceinline__ static int slot(int count) { return count % kSlots; }
  __device__ __forceinline__ unsigned full(int count) const { return barriers + 8 * slot(count); }
  __device__ __forceinline__ unsigned empty(int count) const { return barriers + 8 * (kSlots + slot(count)); }
  __device__ __forceinline__ void wait_until_full(int count) const {
    product::wait_for(full(count), count / kSlots & 1);
  }
  __device__ __forceinline__ void wait_until_empty(int count) const {
    product::wait_for(empty(count), (count / kSlots & 1) ^ 1);
  }
  __device__ __forceinline__ void make(unsigned fillers, unsigned readers) const {
    for (int i = 0; i < kSlots; ++i) {
      product::make_barrier(full(i), fillers);
      product::make_barrier(empty(i), readers);
    }
  }
};

// Which tiles meet: those of a head, in passes over keys and steps over queries.
struct OncePlan {
  int sample, head, query_tiles, key_tiles, passes;
  bool causal;
  __device__ __forceinline__ explicit OncePlan(const AttentionCall& call)
      : sample(static_cast<int>(blockIdx.x) / call.heads),
        head(static_cast<int>(blockIdx.x) % call.heads),
        query_tiles((call.queries + kSide - 1) / kSide),
        key_tiles((call.keys + kSide - 1) / kSide),
        passes((key_tiles + kOnceGroups - 1) / kOnceGroups),
        causal(call.mask == KeyMask::causal) {}
  __device__ __forceinline__ int first_query(int pass) const { return causal ? pass * kOnceGroups : 0; }
  // Tiles of keys of a pass that a tile of queries sees: all before this many.
  __device__ __forceinline__ int seen(int pass, int query) const {
    const int left = key_tiles - pass * kOnceGroups, before = causal ? query - pass * kOnceGroups + 1 : kOnceGroups;
    return min(kOnceGroups, min(left, before));
  }
  __device__ __forceinline__ bool is_last_pass_of(int pass, int query) const {
    return pass + 1 == passes || (causal && query < (pass + 1) * kOnceGroups);
  }
};

// What a warpgroup has the copy engine bring. All its threads wait for the place and one asks, by a predicate: a branch
// that not all take would keep products from running beside each other.
class OnceBringer {
 public:
  __device__ __forceinline__ OnceBringer(const OnceBackward& all, const OncePlan& plan, unsigned tiles,
                                         Ring<kKeySlots> keys, Ring<kQuerySlots> queries)
      : all_(all), plan_(plan), tiles_(tiles), keys_(keys), queries_(queries) {}

  __device__ __forceinline__ void bring_keys(int pass) const {
    if (pass >= plan_.passes) return;
    keys_.wait_until_empty(pass);
    const int first = pass * kOnceGroups, count = min(kOnceGroups, plan_.key_tiles - first);
    const unsigned barrier = keys_.full(pass), to = tiles_ + keys_.slot(pass) * kKeyPlaces * kTileBytes;
    expect(barrier, static_cast<unsigned>(count * 2 * kTileBytes));
#pragma unroll 1
    for (int tile = 0; tile < count; ++tile) {
      bring(to + tile * kTileBytes, all_.k, first + tile, barrier);
      bring(to + (kOnceGroups + tile) * kTileBytes, all_.v, first + tile, barrier);
    }
  }
  // Those of a step, which are `query` or further in `pass` or a later one.
  __device__ __forceinline__ void bring_queries(int step, int pass, int query) const {
    while (pass < plan_.passes && query >= plan_.query_tiles) query += plan_.first_query(++pass) - plan_.query_tiles;
    if (pass >= plan_.passes) return;
    queries_.wait_until_empty(step);
    const unsigned barrier = queries_.full(step);
    const unsigned to = tiles_ + (kFirstQueryPlace + 2 * queries_.slot(step)) * kTileBytes;
    expect(barrier, 2 * kTileBytes);
    bring(to, all_.q, query, barrier);
    bring(to + kTileBytes, all_.dcontext, query, barrier);
  }

 private:
  __device__ __forceinline__ static unsigned asks() { return threadIdx.x == 0 ? 1 : 0; }
  __device__ __forceinline__ static void expect(unsigned barrier, unsigned bytes) {
    asm volatile(
        "{\n.reg .pred asks;\nsetp.ne.b32 asks, %2, 0;\n"
        "@asks mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n}\n" ::"r"(barrier),
        "r"(bytes), "r"(asks())
        : "memory");
  }
  __device__ __forceinline__ void bring(unsigned to, const CUtensorMap& map, int tile, unsigned barrier) const {
    const int block = static_cast<int>(blockIdx.y);
    const int member = all_.from_the_end ? all_.call.members.count - 1 - block : block;
    asm volatile(
        "{\n.reg .pred asks;\nsetp.ne.b32 asks, %7, 0;\n"
        "@asks cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
        "%5}], [%6];\n}\n" ::"r"(to),
        "l"(&map), "r"(plan_.head * kSide), "r"(tile * kSide), "r"(plan_.sample), "r"(member), "r"(barrier), "r"(asks())
        : "memory");
  }
  const OnceBackward& all_;
  const OncePlan& plan_;
  unsigned tiles_;
  Ring<kKeySlots> keys_;
  Ring<kQuerySlots> queries_;
};

}  // namespace norma::cuda::attention
