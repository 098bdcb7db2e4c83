// A form of the backward kernel of row norms: types, what a thread holds of a row, and shared memory.
#pragma once

#include "norms/cuda/row_lines.cuh"
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
  // The row at hand and those on their way; a warp that has a long row by itself takes more of them.
  static constexpr int kStages = kPieces != 3 && (kResiduals > 0 || kHold == Hold::stage) ? 2 : 3;
  static constexpr int kTotals = Norm::kCentred ? 2 : 1;

  // Shared memory: stage, then operand, then warp, then piece, then lane.
  static constexpr int kXBytes = kPieces * kV * static_cast<int>(sizeof(X));  // of a thread's share of a row
  static constexpr int kDyBytes = kPieces * kV * static_cast<int>(sizeof(Y));
  static constexpr int kStageBytes = kXBytes * (1 + kResiduals) + kDyBytes;
  static constexpr int kGatherBytes = kLines * kPieces * kV * static_cast<int>(sizeof(float));
  static constexpr int kSharedBytes = kStages * kStageBytes > kGatherBytes ? kStages* kStageBytes : kGatherBytes;
  // With sums of dx of a long row there are no registers for the gain: behind the stages, for all groups, which are of
  // one warp then.
  static constexpr bool kSharesGain = kSumsDx && kPieces == 3;
  static constexpr int kGainBytes = kSharesGain ? kSpan * static_cast<int>(sizeof(float)) : 0;
  static_assert(kSharedBytes * kThreads + kGainBytes <= 225 << 10);  // of 227 KiB, and the groups' sums
};

}  // namespace norma::cuda
