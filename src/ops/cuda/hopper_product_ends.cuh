// What becomes of the sums of a tile of hopper_product.cuh: each warp has 16 rows of kSide columns.
#pragma once

#include "norma/ops/matmul_slope.h"
#include "ops/cuda/hopper_product.cuh"

namespace norma::cuda::product {

// Written as they are, in f32.
struct Wide {
  static constexpr bool kSums = true, kBrings = false;
  static constexpr int kSlots = 0;
  __device__ __forceinline__ void operator()(const Sums& c, const One& one, std::byte* member, int row,
                                             int column) const {
    float* const out = at<float>(member, one.out);
    const int g = attention::MatrixLanes::g(), t = attention::MatrixLanes::t();
#pragma unroll
    for (int n = 0; n < kSide / 8; ++n) {
      const int to = column + 8 * n + 2 * t;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int line = row + 8 * half + g;
        if (line < one.m && to < one.n) {
          *reinterpret_cast<float2*>(out + std::int64_t{line} * one.n + to) =
              make_float2(c[0][n][2 * half], c[0][n][2 * half + 1]);
        }
      }
    }
  }
};

// A tile of bf16 as the copy engine brings and takes it: two parts of 64 columns, swizzled. Two neighbouring columns of
// a row, those of c[0][n][2 * half]; the lanes of a warp meet no bank twice.
__device__ __forceinline__ unsigned& pair_of(Element* tile, int n, int half) {
  const int g = attention::MatrixLanes::g(), t = attention::MatrixLanes::t();
  const int row = static_cast<int>(threadIdx.x) / kWarp * 16 + 8 * half + g;
  return *reinterpret_cast<unsigned*>(tile + n / 8 * kElements + attention::swizzled(row, n % 8 * 8) + 2 * t);
}

__device__ __forceinline__ float2 unpacked(unsigned pair) {
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}

// One part of a tile: this warp's rows of 64 columns from `column` on, to where they belong. A map has boxes of
// kRowsOfWarp rows. By one lane, after all have published what they wrote.
constexpr int kRowsOfWarp = 16;
__device__ __forceinline__ void send_part(const CUtensorMap& map, const Element* part, const Place& place, int column) {
  if (column >= place.one->n) return;
  const int row = static_cast<int>(threadIdx.x) / kWarp * kRowsOfWarp;
  send_box(map, column, place.row + row, place.member, attention::shared_address(part + row * attention::kLine));
}

// Both parts.
__device__ __forceinline__ void send_rows(const CUtensorMap& map, const Element* tile, const Place& place) {
  attention::publish();
  __syncwarp();
  if (attention::lane_of() != 0) return;
#pragma unroll
  for (int part = 0; part < kSide / 64; ++part)
    send_part(map, tile + part * kElements, place, place.column + 64 * part);
  commit_boxes();
}

// The bias of two neighbouring columns.
__device__ __forceinline__ float2 shift_of(const Element* bias, const Place& place, int n) {
  float shift[2] = {};
  const int from = place.column + 8 * n + 2 * attention::MatrixLanes::t();
  if (bias != nullptr && from < place.one->n) load<Element, 2>(bias + from, shift);
  return make_float2(shift[0], shift[1]);
}

// out = c + bias
struct Biased {
  static constexpr bool kSums = false, kBrings = false;
  static constexpr int kSlots = 1;
  CUtensorMap out;
  std::int64_t bias = kAbsent;
  __device__ __forceinline__ void operator()(const Sums& c, const Place& place, std::byte* member,
                                             Element* const (&slots)[kSlots]) const {
    const Element* const added = at<const Element>(member, bias);
#pragma unroll
    for (int n = 0; n < kSide / 8; ++n) {
      const float2 shift = shift_of(added, place, n);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        pair_of(slots[0], n, half) = attention::pack_pair(c[0][n][2 * half] + shift.x, c[0][n][2 * half + 1] + shift.y);
      }
    }
    send_rows(out, slots[0], place);
  }
};

// z = c + bias is kept where it is wanted, out = f(z). The place of the ring holds 64 columns of both at a time: two
// places for each tile would leave none for what comes next.
template <class F>
struct Activated {
  static constexpr bool kSums = false, kBrings = false;
  static constexpr int kSlots = 1;
  CUtensorMap out, before;
  bool keeps = false;
  std::int64_t bias = kAbsent;
  __device__ __forceinline__ void operator()(const Sums& c, const Place& place, std::byte* member,
                                             Element* const (&slots)[kSlots]) const {
    const Element* const added = at<const Element>(member, bias);
    Element *const given = slots[0], *const made = slots[0] + kElements;
#pragma unroll
    for (int part = 0; part < kSide / 64; ++part) {
      if (part > 0) {
        if (attention::lane_of() == 0) wait_until_sent();
        __syncwarp();
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int n = 8 * part + i;
        const float2 shift = shift_of(added, place, n);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const unsigned z = attention::pack_pair(c[0][n][2 * half] + shift.x, c[0][n][2 * half + 1] + shift.y);
          if (keeps) pair_of(given, i, half) = z;
          const float2 rounded = unpacked(z);
          pair_of(made, i, half) = attention::pack_pair(F::value(rounded.x), F::value(rounded.y));
        }
      }
      attention::publish();
      __syncwarp();
      if (attention::lane_of() != 0) continue;
      if (keeps) send_part(before, given, place, place.column + 64 * part);
      send_part(out, made, place, place.column + 64 * part);
      commit_boxes();
    }
  }
};

// The sums over the rows of a tile, of each 64 by the four warps that have them: a line of `lines`. A warp adds up its
// 16 rows by a product with ones.
__device__ __forceinline__ void sum_rows(const Element* tile, const Place& place, float* lines) {
  static_assert(kRowsOfSlopeLine == 64 && kSide == 2 * kRowsOfSlopeLine && kSide == attention::kGroup);
  __shared__ float gathered[kConsumers / kWarp][kSide];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = attention::lane_of();
  const int g = attention::MatrixLanes::g(), t = attention::MatrixLanes::t();
  constexpr unsigned kOnes[4] = {0x3f803f80u, 0x3f803f80u, 0x3f803f80u, 0x3f803f80u};
  __syncwarp();
#pragma unroll
  for (int n = 0; n < kSide / 8; n += 2) {
    // 8 columns and the next 8, each as its upper and its lower 8 rows.
    unsigned both[4];
    const int row = warp * kRowsOfWarp + (lane & 15), column = n % 8 * 8 + (lane >> 4) * 8;
    attention::load_matrices_transposed(both, tile + n / 8 * kElements + attention::swizzled(row, column));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float sums[4] = {};
      attention::Bf16Unit::mma(sums, kOnes, both[2 * i], both[2 * i + 1]);
      if (g == (n + i) % 8) *reinterpret_cast<float2*>(&gathered[warp][8 * (n + i) + 2 * t]) = {sums[0], sums[1]};
    }
  }
  const int half = thread / attention::kGroup, column = thread % attention::kGroup, first = half * 4;
  const auto meet = [&] { asm volatile("bar.sync %0, %1;" ::"r"(2 + half), "n"(attention::kGroup) : "memory"); };
  meet();
  const int line = place.row / 64 + half;
  if (line * 64 < place.one->m && place.column + column < place.one->n) {
    lines[std::int64_t{line} * place.one->n + place.column + column] =
        (gathered[first][column] + gathered[first + 1][column]) +
        (gathered[first + 2][column] + gathered[first + 3][column]);
  }
  meet();  // `gathered` may be used again
}

// out = c f'(z), with z as Activated kept it; and its sums over rows.
template <class F>
struct Sloped {
  static constexpr bool kSums = false, kBrings = true;
  static constexpr int kSlots = 1;
  CUtensorMap out, before;  // of kRowsOfWarp and of kSide rows
  std::int64_t lines = kAbsent;
  __device__ __forceinline__ void bring(unsigned to, const Place& place, unsigned barrier) const {
#pragma unroll
    for (int part = 0; part < kSide / 64; ++part) {
      bring_box(to + part * kElements * 2, before, place.column + 64 * part, place.row, place.member, barrier);
    }
  }
  __device__ __forceinline__ void operator()(const Sums& c, const Place& place, std::byte* member,
                                             Element* const (&slots)[kSlots]) const {
#pragma unroll
    for (int n = 0; n < kSide / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        unsigned& pair = pair_of(slots[0], n, half);
        const float2 z = unpacked(pair);
        pair = attention::pack_pair(c[0][n][2 * half] * F::slope(z.x), c[0][n][2 * half + 1] * F::slope(z.y));
      }
    }
    send_rows(out, slots[0], place);
    if (lines >= 0) sum_rows(slots[0], place, at<float>(member, lines));
  }
};

}  // namespace norma::cuda::product
