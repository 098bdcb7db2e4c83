// Backward kernel of every row norm; policies and conditions as in row_norm.cuh.
//   dx = rstd (g - mean(g) - xh pull sum(g xh)) + residual,  g = gain dy
//   dgain = sum over rows of dy xh,  dbias = sum over rows of dy
// A block stays and walks over its rows, with its share of dgain and dbias in registers; rows to come are on their way
// to shared memory meanwhile. At the end the share becomes one line of scratch; add_lines adds the lines in their
// order.
#pragma once

#include "norms/cuda/row_group.cuh"
#include "norms/cuda/row_launch.h"
#include "norms/cuda/row_lines.cuh"
#include "norms/cuda/row_scale.cuh"
#include "norms/cuda/row_vector.cuh"

namespace norma::cuda {

template <class Norm_, typename X_, typename Y_, int kPieces_, int kResiduals_, Hold kHold_,
          DxSums kDxSums_ = DxSums::none>
struct BackwardForm {
  using Norm = Norm_;
  using X = X_;
  using Y = Y_;
  static constexpr int kPieces = kPieces_, kResiduals = kResiduals_;
  static constexpr Hold kHold = kHold_;
  static constexpr bool kSumsDx = kDxSums_ == DxSums::lines;
  static constexpr int kLines = kSumsDx ? 3 : 2;  // dgain, dbias, dx
  static constexpr int kV = kVector<X, Y>;
  static constexpr int kHop = kWarp * kV, kSpan = kPieces * kHop;
  static constexpr int kThreads = kSumsDx && kPieces == 1 ? 512 : most_backward_threads(kPieces, kHold);
  // The row at hand and those on their way.
  static constexpr int kStages = kResiduals > 0 || kHold == Hold::stage ? 2 : 3;
  static constexpr int kTotals = Norm::kCentred ? 2 : 1;

  // Shared memory: stage, then operand, then warp, then piece, then lane.
  static constexpr int kXBytes = kPieces * kV * static_cast<int>(sizeof(X));  // of a thread's share of a row
  static constexpr int kDyBytes = kPieces * kV * static_cast<int>(sizeof(Y));
  static constexpr int kStageBytes = kXBytes * (1 + kResiduals) + kDyBytes;
  static constexpr int kGatherBytes = kLines * kPieces * kV * static_cast<int>(sizeof(float));
  static constexpr int kSharedBytes = kStages * kStageBytes > kGatherBytes ? kStages* kStageBytes : kGatherBytes;
};

template <class F>
class BackwardBlock {
  using Norm = typename F::Norm;
  using X = typename F::X;
  using Y = typename F::Y;
  static constexpr int kV = F::kV, kPieces = F::kPieces;

 public:
  using Shared = typename RowGroup<F::kTotals>::Shared;

  // inverse: 1 / call.counted
  __device__ __forceinline__ BackwardBlock(const RowNormBackwardCall& call, RowMap map, float inverse,
                                           std::byte* stages, Shared& shared)
      : call_(call),
        map_(map),
        inverse_(inverse),
        stages_(stages),
        group_(map, shared),
        member_(call.members.base + blockIdx.y * call.members.stride),
        width_(static_cast<int>(call.width)),
        rows_(static_cast<int>(call.rows)),
        column_(group_.lane() / kWarp * F::kSpan + group_.lane() % kWarp * kV) {}

  __device__ __forceinline__ void run() {
    const int first = static_cast<int>(blockIdx.x) * map_.groups + group_.index();
    const int hop = static_cast<int>(gridDim.x) * map_.groups;
#pragma unroll
    for (int stage = 0; stage < F::kStages - 1; ++stage) fetch(first + stage * hop, stage);
    fetch_statistics(first);
    eps_ = *at<const float>(member_, call_.eps);
    read_gain();
    int stage = 0, free = F::kStages - 1;
#pragma unroll 1
    for (int row = first; row - group_.index() < rows_; row += hop) {
      fetch(row + (F::kStages - 1) * hop, free);
      rstd_ = next_rstd_;
      mean_ = next_mean_;
      fetch_statistics(row + hop);
      wait_for_copies<F::kStages - 1>();
      take_row(row, stages_ + stage * F::kStageBytes * map_.threads());
      free = stage;
      stage = stage + 1 == F::kStages ? 0 : stage + 1;
    }
    if (call_.dgain >= 0 || call_.dbias >= 0) write_line();
  }

 private:
  __device__ __forceinline__ bool has(int piece) const { return column_ + piece * F::kHop < width_; }

  template <typename T>
  __device__ __forceinline__ static Raw<T, kV>* slot(std::byte* operand, int piece) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
    return reinterpret_cast<Raw<T, kV>*>(operand) + warp * kWarp * kPieces + piece * kWarp + lane;
  }
  template <typename T>
  __device__ __forceinline__ static void read(std::byte* operand, int piece, float (&v)[kV]) {
    unpack<T, kV>(*slot<T>(operand, piece), v);
  }

  __device__ __forceinline__ void fetch(int row, int stage) {
    if (row < rows_) {
      std::byte* const x = stages_ + stage * F::kStageBytes * map_.threads();
      std::byte* const dy = x + F::kXBytes * map_.threads();
      std::byte* const residual = dy + F::kDyBytes * map_.threads();
      const std::int64_t from = static_cast<std::int64_t>(row) * width_ + column_;
#pragma unroll
      for (int p = 0; p < kPieces; ++p) {
        if (!has(p)) continue;
        const std::int64_t i = from + p * F::kHop;
        copy_async<kV * sizeof(X)>(slot<X>(x, p), at<const X>(member_, call_.x) + i);
        copy_async<kV * sizeof(Y)>(slot<Y>(dy, p), at<const Y>(member_, call_.dy) + i);
        if constexpr (F::kResiduals > 0) {
          copy_async<kV * sizeof(X)>(slot<X>(residual, p), at<const X>(member_, call_.residual[0]) + i);
        }
      }
    }
    commit_copies();
  }

  __device__ __forceinline__ void fetch_statistics(int row) {
    if (row >= rows_) return;
    next_rstd_ = at<const float>(member_, call_.rstd)[row];
    if constexpr (Norm::kCentred) next_mean_ = at<const float>(member_, call_.mean)[row];
  }

  __device__ __forceinline__ void read_gain() {
    const float* const gain = at<const float>(member_, call_.gain);
    one_gain_ = Norm::kOneGain && gain != nullptr ? gain[0] : 1.0f;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const bool given = !Norm::kOneGain && gain != nullptr && has(p);
      load_floats<kV>(given ? gain + column_ + p * F::kHop : nullptr, 1.0f, gain_[p]);
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        dgain_[p][j] = dbias_[p][j] = 0.0f;
        if constexpr (F::kSumsDx) dx_[p][j] = 0.0f;
      }
    }
  }

  // xh and dy of a piece.
  __device__ __forceinline__ void read_piece(std::byte* stage, int p, float (&xh)[kV], float (&dy)[kV]) const {
    read<X>(stage, p, xh);
    read<Y>(stage + F::kXBytes * map_.threads(), p, dy);
#pragma unroll
    for (int j = 0; j < kV; ++j) xh[j] = (Norm::kCentred ? xh[j] - mean_ : xh[j]) * rstd_;
  }

  __device__ __forceinline__ float weighted(float dy, int p, int j) const {
    return Norm::kOneGain ? dy : dy * gain_[p][j];
  }

  struct Piece {
    float xh[kV], dy[kV];
  };

  // The whole group together, past the last row too.
  __device__ __forceinline__ void take_row(int row, std::byte* stage) {
    const bool valid = row < rows_;
    Piece pieces[kPieces];
    float total[F::kTotals] = {};  // of g xh, of g
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      if (!valid || !has(p)) continue;
      Piece& piece = pieces[p];
      read_piece(stage, p, piece.xh, piece.dy);
#pragma unroll
      for (int j = 0; j < kV; ++j) {
        const float g = weighted(piece.dy[j], p, j);
        total[0] += g * piece.xh[j];
        if constexpr (Norm::kCentred) total[1] += g;
        if constexpr (!Norm::kOneGain) dgain_[p][j] += piece.dy[j] * piece.xh[j];
        if constexpr (Norm::kBias) dbias_[p][j] += piece.dy[j];
      }
    }
    group_.sum(total);
    if (!valid) return;
    if constexpr (Norm::kOneGain) one_dgain_ += total[0];
    if (!wants_dx(call_)) return;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      if (!has(p)) continue;
      if constexpr (F::kHold == Hold::stage) read_piece(stage, p, pieces[p].xh, pieces[p].dy);
      write_dx(row, p, stage, total, pieces[p]);
    }
  }

  __device__ __forceinline__ void write_dx(int row, int p, std::byte* stage, const float (&total)[F::kTotals],
                                           const Piece& piece) {
    const float scale = rstd_ * one_gain_;
    const float shift = Norm::kCentred ? total[F::kTotals - 1] * inverse_ * scale : 0.0f;
    const bool counts = column_ + p * F::kHop < call_.counted;  // whole pieces count or do not
    const float pull = counts ? total[0] * Norm::pull(rstd_, inverse_, eps_) * scale : 0.0f;
    float dx[kV];
#pragma unroll
    for (int j = 0; j < kV; ++j) {
      const float g = weighted(piece.dy[j], p, j);
      dx[j] = (Norm::kCentred ? g * scale - shift : g * scale) - piece.xh[j] * pull;
    }
    if constexpr (F::kResiduals > 0) {
      float residual[kV];
      read<X>(stage + (F::kXBytes + F::kDyBytes) * map_.threads(), p, residual);
#pragma unroll
      for (int j = 0; j < kV; ++j) dx[j] += residual[j];
    }
    if constexpr (F::kSumsDx) {
#pragma unroll
      for (int j = 0; j < kV; ++j) dx_[p][j] += dx[j];
    }
    const std::int64_t to = static_cast<std::int64_t>(row) * width_ + column_ + p * F::kHop;
    write_gradients<X, kV, kTakesScales<X>>(call_, member_, to, column_ + p * F::kHop, dx);
  }

  // Groups of one warp add up their shares. Returns whether this thread has the sum.
  __device__ __forceinline__ bool gather_in_warp() {
    for (int distance = map_.lanes; distance < kWarp; distance <<= 1) {
      if constexpr (Norm::kOneGain) one_dgain_ += __shfl_xor_sync(kAll, one_dgain_, distance);
#pragma unroll
      for (int p = 0; p < kPieces; ++p) {
        if constexpr (!Norm::kOneGain) add_across(dgain_[p], distance);
        if constexpr (Norm::kBias) add_across(dbias_[p], distance);
        if constexpr (F::kSumsDx) add_across(dx_[p], distance);
      }
    }
    return map_.lanes >= kWarp || static_cast<int>(threadIdx.x) % kWarp < map_.lanes;
  }

  // The shares of the block's warps or groups, added in their order: dgain, dbias.
  __device__ __forceinline__ void write_line() {
    float* const gathered = reinterpret_cast<float*>(stages_);  // [share, dgain or dbias, width]
    const int span = map_.lanes < kWarp ? kWarp : map_.lanes, share = static_cast<int>(threadIdx.x) / span;
    const bool has_sum = gather_in_warp();
    wait_for_copies<0>();
    __syncthreads();  // other threads may still read their stages
    if constexpr (Norm::kOneGain) {
      if (has_sum && group_.lane() == 0) gathered[share] = one_dgain_;
    } else {
      float* const mine = gathered + share * F::kLines * width_ + column_;
#pragma unroll
      for (int p = 0; p < kPieces; ++p) {
        if (!has_sum || !has(p)) continue;
#pragma unroll
        for (int j = 0; j < kV; ++j) {
          mine[p * F::kHop + j] = dgain_[p][j];
          if constexpr (Norm::kBias) mine[width_ + p * F::kHop + j] = dbias_[p][j];
          if constexpr (F::kSumsDx) mine[2 * width_ + p * F::kHop + j] = dx_[p][j];
        }
      }
    }
    __syncthreads();
    const int shares = map_.threads() / span, stride = Norm::kOneGain ? 1 : F::kLines * width_;
    const int numbers = Norm::kOneGain ? 1 : F::kSumsDx ? 3 * width_ : Norm::kBias ? 2 * width_ : width_;
    for (int i = static_cast<int>(threadIdx.x); i < numbers; i += map_.threads()) {
      if (F::kSumsDx && !Norm::kBias && i >= width_ && i < 2 * width_) continue;
      float all = gathered[i];
      for (int s = 1; s < shares; ++s) all += gathered[s * stride + i];
      put(static_cast<int>(blockIdx.x), i, all);
      for (int line = static_cast<int>(blockIdx.x + gridDim.x); line < call_.lines; line += static_cast<int>(gridDim.x))
        put(line, i, 0.0f);
    }
  }

  // Number i of a line: in scratch, where dgain and dbias lie side by side, or where it is wanted.
  __device__ __forceinline__ void put(int line, int i, float value) const {
    if (call_.lines == 0) {
      at<float>(member_, call_.scratch)[static_cast<std::int64_t>(line) * 2 * width_ + i] = value;
      return;
    }
    const int which = i / width_;
    float* const out = at<float>(member_, which == 0 ? call_.dgain : which == 1 ? call_.dbias : call_.dx_lines);
    if (out != nullptr) out[static_cast<std::int64_t>(line) * width_ + i - which * width_] = value;
  }

  const RowNormBackwardCall& call_;
  const RowMap map_;
  const float inverse_;
  std::byte* const stages_;
  RowGroup<F::kTotals> group_;
  std::byte* const member_;
  const int width_, rows_, column_;
  float eps_, one_gain_, one_dgain_ = 0.0f;
  float rstd_, mean_ = 0.0f, next_rstd_ = 0.0f, next_mean_ = 0.0f;
  float gain_[kPieces][kV], dgain_[kPieces][kV], dbias_[kPieces][kV];
  float dx_[F::kSumsDx ? kPieces : 1][kV];  // sums
};

template <class F>
__global__ void __launch_bounds__(F::kThreads)
    row_backward_kernel(const __grid_constant__ RowNormBackwardCall call, const RowMap map, const float inverse) {
  extern __shared__ __align__(16) std::byte stages[];
  __shared__ typename BackwardBlock<F>::Shared shared;
  if (call.members.active != nullptr && call.members.active[blockIdx.y] == 0) return;
  BackwardBlock<F>(call, map, inverse, stages, shared).run();
}

}  // namespace norma::cuda
