// Forward kernel of every row norm, for rows of whole 16 bytes that fit a block's registers. A norm is a policy:
//   kCentred   whether the mean is subtracted
//   kBias      whether there can be a bias
//   kOneGain   whether the gain is one number, applied to the whole row
//   rstd(squares, inverse, eps)   from the sum of squares of the (centred) row; inverse = 1 / channels that count
//   pull(rstd, inverse, eps)      how strongly rstd follows x: dx = rstd (g - mean(g) - xh pull sum(g xh))
// A warp, or a block, reads its rows, reduces, writes them and is done: the next block is the pipeline. What was tried
// and lost: blocks that stay and walk over all rows (a copy written so reaches 93 % of the best), and more than 64
// bytes on their way per thread.
#pragma once

#include "norms/cuda/row_group.cuh"
#include "norms/cuda/row_launch.h"
#include "norms/cuda/row_scale.cuh"
#include "norms/cuda/row_vector.cuh"

namespace norma::cuda {

enum class RowTeam { lanes, warp, block };  // who shares a row; lanes: a power of two of them

// kPieces accesses of each of kRows rows per thread.
template <class Norm_, typename X_, typename Y_, int kPieces_, int kRows_, int kTerms_, RowTeam kTeam_>
struct ForwardForm {
  using Norm = Norm_;
  using X = X_;
  using Y = Y_;
  static constexpr int kPieces = kPieces_, kRows = kRows_, kTerms = kTerms_;
  static constexpr RowTeam kTeam = kTeam_;
  static constexpr int kV = kVector<X, Y>;
  static constexpr int kHop = kWarp * kV;                              // from a thread's piece to its next
  static constexpr int kSpan = kPieces * kHop;                         // of a warp
  static constexpr int kThreads = kTeam == RowTeam::block ? 256 : 64;  // of a block: at most, or exactly
  // Threads that a multiprocessor should hold at once, as far as they do not spill: with 80, 64 or 48 registers each.
  static constexpr bool kSpills = kV == 8 && kTeam != RowTeam::block && kPieces != 3;
  static constexpr int kResident = kPieces > 4 ? 768 : kSpills ? 1024 : 1280;
};

// Where a thread is.
template <class F>
struct ForwardPlace {
  std::byte* member;
  int width, lanes;
  int lane, column;
  int left, counts;     // channels from here on: of the row, of those that count
  int row, next, rows;  // the first row, from one to the next, and how many there are from here on
  std::int64_t begin;

  __device__ __forceinline__ ForwardPlace(const RowNormCall& call, int team)
      : member(call.members.base + blockIdx.y * call.members.stride),
        width(static_cast<int>(call.width)),
        lanes(F::kTeam == RowTeam::lanes ? team : kWarp),
        lane(F::kTeam == RowTeam::lanes ? static_cast<int>(threadIdx.x) & (lanes - 1) : static_cast<int>(threadIdx.x)),
        column((F::kTeam == RowTeam::block ? static_cast<int>(threadIdx.y) * F::kSpan : 0) + lane * F::kV),
        left(width - column),
        counts(static_cast<int>(call.counted) - column) {
    const int group = F::kTeam == RowTeam::lanes ? static_cast<int>(threadIdx.x) / lanes : 0;
    next = F::kTeam == RowTeam::lanes ? kWarp / lanes : 1;
    row = static_cast<int>(F::kTeam == RowTeam::block ? blockIdx.x : blockIdx.x * blockDim.y + threadIdx.y) * F::kRows *
              next +
          group;
    rows = static_cast<int>(call.rows) - row;
    begin = static_cast<std::int64_t>(row) * width + column;
  }

  __device__ __forceinline__ bool has(int r) const { return r * next < rows; }
  __device__ __forceinline__ bool has(int r, int piece) const { return piece * F::kHop < left && has(r); }
  __device__ __forceinline__ std::int64_t index(int r, int piece) const {
    return begin + static_cast<std::int64_t>(r * next) * width + piece * F::kHop;
  }
};

template <class F, int kValues>
__device__ __forceinline__ void sum_over_team(const ForwardPlace<F>& place, float (&v)[kValues]) {
  F::kTeam == RowTeam::lanes ? sum_over_lanes(v, place.lanes) : sum_over_warp(v);
}

// The rows stay in the stream's type until they are used, again and again: registers are scarcer than conversions.
template <class F>
struct ForwardRows {
  Raw<typename F::X, F::kV> raw[F::kRows][F::kPieces];
  float mean[F::kRows], squares[F::kRows];

  __device__ __forceinline__ void get(int r, int piece, float (&x)[F::kV]) const {
    unpack<typename F::X, F::kV>(raw[r][piece], x);
  }
};

// All reads are on their way before the first is waited for, and before it is known whether the member is active.
template <class F>
__device__ __forceinline__ bool read_rows(const RowNormCall& call, const ForwardPlace<F>& place, ForwardRows<F>& rows) {
  using X = typename F::X;
  using Y = typename F::Y;
  const bool active = call.members.active == nullptr || call.members.active[blockIdx.y] != 0;
  Raw<Y, F::kV> second[F::kRows][F::kPieces];
#pragma unroll
  for (int r = 0; r < F::kRows; ++r) {
#pragma unroll
    for (int p = 0; p < F::kPieces; ++p) {
      rows.raw[r][p] = {};
      if (!place.has(r, p)) continue;
      rows.raw[r][p] = load_raw<X, F::kV>(at<const X>(place.member, call.term[0]) + place.index(r, p));
      if constexpr (F::kTerms > 1) {
        second[r][p] = load_raw<Y, F::kV>(at<const Y>(place.member, call.term[1]) + place.index(r, p));
      }
    }
  }
  if (!active) return false;
  if constexpr (F::kTerms > 1) {
#pragma unroll
    for (int r = 0; r < F::kRows; ++r) {
#pragma unroll
      for (int p = 0; p < F::kPieces; ++p) {
        if (!place.has(r, p)) continue;
        float x[F::kV], other[F::kV];
        rows.get(r, p, x);
        unpack<Y, F::kV>(second[r][p], other);
        if (kTakesScales<X> && call.scaled) {
          scale_by<F::kV>(call.scale[0], place.member, place.column + p * F::kHop, x);
          scale_by<F::kV>(call.scale[1], place.member, place.column + p * F::kHop, other);
        }
#pragma unroll
        for (int j = 0; j < F::kV; ++j) x[j] += other[j];
        rows.raw[r][p] = pack<X, F::kV>(x);
        if (call.sum >= 0) store<X, F::kV>(at<X>(place.member, call.sum) + place.index(r, p), x);
      }
    }
  }
  return true;
}

// Mean and sum of squares of what the warp has; the mean is that of its own channels, the squares are around it.
template <class F>
__device__ __forceinline__ void take_moments(const ForwardPlace<F>& place, float inverse, ForwardRows<F>& rows) {
#pragma unroll
  for (int r = 0; r < F::kRows; ++r) rows.mean[r] = rows.squares[r] = 0.0f;
  if constexpr (F::Norm::kCentred) {
#pragma unroll
    for (int r = 0; r < F::kRows; ++r) {
#pragma unroll
      for (int p = 0; p < F::kPieces; ++p) {
        float x[F::kV];
        rows.get(r, p, x);
#pragma unroll
        for (int j = 0; j < F::kV; ++j) rows.mean[r] += x[j];
      }
    }
    sum_over_team(place, rows.mean);
#pragma unroll
    for (int r = 0; r < F::kRows; ++r) rows.mean[r] *= inverse;
  }
#pragma unroll
  for (int r = 0; r < F::kRows; ++r) {
#pragma unroll
    for (int p = 0; p < F::kPieces; ++p) {
      if (p * F::kHop >= place.counts) continue;  // whole pieces count or do not
      float x[F::kV];
      rows.get(r, p, x);
#pragma unroll
      for (int j = 0; j < F::kV; ++j) {
        const float centred = F::Norm::kCentred ? x[j] - rows.mean[r] : x[j];
        rows.squares[r] += centred * centred;
      }
    }
  }
  sum_over_team(place, rows.squares);
}

// Makes one row's moments of those of the warps (Chan, Golub, LeVeque 1979): one barrier for both, and no cancellation.
template <class F>
__device__ __forceinline__ void merge_moments(int width, float inverse, float2 (&shared)[kMostWarps], float& mean,
                                              float& squares) {
  if (threadIdx.x == 0) shared[threadIdx.y] = {mean, squares};
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x), channels = width - warp * F::kSpan;
  const bool there = warp < static_cast<int>(blockDim.y);
  const float2 part = there ? shared[warp] : make_float2(0.0f, 0.0f);
  const float count = there ? static_cast<float>(channels < F::kSpan ? channels : F::kSpan) : 0.0f;
  float total[1];
  if constexpr (F::Norm::kCentred) {
    total[0] = part.x * count;
    sum_over_warp(total);
    mean = total[0] * inverse;
  }
  const float apart = part.x - mean;
  total[0] = F::Norm::kCentred ? part.y + apart * apart * count : part.y;
  sum_over_warp(total);
  squares = total[0];
}

template <class F>
__device__ __forceinline__ void write_rows(const RowNormCall& call, const ForwardPlace<F>& place, float inverse,
                                           ForwardRows<F>& rows) {
  using Norm = typename F::Norm;
  const float eps = *at<const float>(place.member, call.eps);
  const float* const gain = at<const float>(place.member, call.gain);
  const float* const bias = Norm::kBias ? at<const float>(place.member, call.bias) : nullptr;
  float scale[F::kRows];
#pragma unroll
  for (int r = 0; r < F::kRows; ++r) {
    scale[r] = Norm::rstd(rows.squares[r], inverse, eps);
    if (place.column == 0 && place.has(r)) {
      if (call.rstd >= 0) at<float>(place.member, call.rstd)[place.row + r * place.next] = scale[r];
      if (Norm::kCentred && call.mean >= 0)
        at<float>(place.member, call.mean)[place.row + r * place.next] = rows.mean[r];
    }
    if (Norm::kOneGain && gain != nullptr) scale[r] *= gain[0];
  }
#pragma unroll
  for (int p = 0; p < F::kPieces; ++p) {
    if (p * F::kHop >= place.left) continue;
    float g[F::kV], b[F::kV];
    const int here = place.column + p * F::kHop;
    load_floats<F::kV>(Norm::kOneGain || gain == nullptr ? nullptr : gain + here, 1.0f, g);
    load_floats<F::kV>(bias == nullptr ? nullptr : bias + here, 0.0f, b);
#pragma unroll
    for (int r = 0; r < F::kRows; ++r) {
      float x[F::kV];
      rows.get(r, p, x);
#pragma unroll
      for (int j = 0; j < F::kV; ++j) {
        x[j] = (Norm::kCentred ? x[j] - rows.mean[r] : x[j]) * scale[r];
        if constexpr (!Norm::kOneGain) x[j] = Norm::kBias ? x[j] * g[j] + b[j] : x[j] * g[j];
      }
      if (call.relu) relu_of(x);
      if (place.has(r)) write_y<typename F::X, typename F::Y, F::kV>(call, place.member, place.index(r, p), x);
    }
  }
}

// inverse: 1 / channels that count; lanes: of a team of lanes
template <class F>
__global__ void __launch_bounds__(F::kThreads, F::kResident / F::kThreads)
    row_norm_kernel(const __grid_constant__ RowNormCall call, const float inverse, const int lanes) {
  const ForwardPlace<F> place(call, lanes);
  if (F::kTeam != RowTeam::lanes && place.rows <= 0) return;  // the whole warp, or the whole block
  ForwardRows<F> rows;
  if (!read_rows(call, place, rows)) return;
  if constexpr (F::kTeam != RowTeam::block) {
    take_moments(place, inverse, rows);
  } else {
    static_assert(F::kRows == 1);
    __shared__ float2 shared[kMostWarps];
    const int channels = place.width - static_cast<int>(threadIdx.y) * F::kSpan;
    take_moments(place, 1.0f / static_cast<float>(channels < F::kSpan ? channels : F::kSpan), rows);
    merge_moments<F>(place.width, inverse, shared, rows.mean[0], rows.squares[0]);
  }
  write_rows(call, place, inverse, rows);
}

}  // namespace norma::cuda
