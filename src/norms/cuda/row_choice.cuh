// Which kernel a call gets, and with which grid: by widths and alignment. Measured on an H200; see bench/cuda/norms.cu.
// A norm's .cu file defines its two functions with row_norm<Policy> and row_backward<Policy>.
#pragma once

#include <algorithm>
#include <climits>
#include <initializer_list>

#include "norms/cuda/column_sums.cuh"
#include "norms/cuda/row_backward.cuh"
#include "norms/cuda/row_general.cuh"
#include "norms/cuda/row_lines.cuh"
#include "norms/cuda/row_norm.cuh"
#include "ops/cuda/column_lines.h"

namespace norma::cuda {

inline bool multiples_of_16(const Members& members, std::initializer_list<std::int64_t> offsets) {
  if (reinterpret_cast<std::uintptr_t>(members.base) % 16 != 0 || members.stride % 16 != 0) return false;
  return std::all_of(offsets.begin(), offsets.end(),
                     [](std::int64_t offset) { return offset < 0 || offset % 16 == 0; });
}

inline bool possible(const Members& members, std::int64_t rows, std::int64_t width, std::int64_t counted,
                     int operands) {
  return members.count > 0 && rows > 0 && rows < INT_MAX / 2 && width > 0 && width < INT_MAX / 64 && counted > 0 &&
         counted <= width && operands >= 0 && operands <= kMostRowTerms;
}

// Threads for a row that is walked piece by piece.
inline int general_threads(std::int64_t pieces) {
  return static_cast<int>(std::clamp<std::int64_t>((pieces + 3) / 4 / kWarp * kWarp, kWarp, 1024));
}

template <class F>
int launch_forward(const RowNormCall& call, Stream stream) {
  const std::int64_t warps = (call.width + F::kSpan - 1) / F::kSpan;
  const dim3 block(kWarp, static_cast<unsigned>(F::kTeam == RowTeam::block ? warps : F::kThreads / kWarp));
  int lanes = kWarp;
  while (F::kTeam == RowTeam::lanes && lanes / 2 * F::kV >= call.width) lanes /= 2;
  const std::int64_t teams = F::kTeam == RowTeam::block ? 1 : static_cast<std::int64_t>(block.y) * (kWarp / lanes);
  const std::int64_t rows = teams * F::kRows;
  const dim3 grid(static_cast<unsigned>((call.rows + rows - 1) / rows), static_cast<unsigned>(call.members.count));
  row_norm_kernel<F><<<grid, block, 0, stream>>>(call, 1.0f / static_cast<float>(call.counted), lanes);
  return static_cast<int>(cudaGetLastError());
}

constexpr std::int64_t kWidestForward = 8192;  // of row_norm_kernel

// 64 bytes of a row, or of several, per thread, or 48 if fewer threads idle then; wide f32 rows take 128 rather than
// more warps.
template <class Norm, typename X, typename Y, int kTerms>
int launch_forward_as(const RowNormCall& call, Stream stream) {
  constexpr int kHop = kWarp * kVector<X, Y>;
  if (call.width <= kHop / 2)
    return launch_forward<ForwardForm<Norm, X, Y, 1, 4, kTerms, RowTeam::lanes>>(call, stream);
  if (call.width <= kHop) return launch_forward<ForwardForm<Norm, X, Y, 1, 4, kTerms, RowTeam::warp>>(call, stream);
  if (call.width <= 2 * kHop) return launch_forward<ForwardForm<Norm, X, Y, 2, 2, kTerms, RowTeam::warp>>(call, stream);
  if (call.width <= 3 * kHop) return launch_forward<ForwardForm<Norm, X, Y, 3, 1, kTerms, RowTeam::warp>>(call, stream);
  if (call.width <= 4 * kHop) return launch_forward<ForwardForm<Norm, X, Y, 4, 1, kTerms, RowTeam::warp>>(call, stream);
  if constexpr (sizeof(X) == 4) {
    if (call.width > 4096) return launch_forward<ForwardForm<Norm, X, Y, 8, 1, kTerms, RowTeam::block>>(call, stream);
  }
  const std::int64_t hops = (call.width + kHop - 1) / kHop, by_three = (hops + 2) / 3, by_four = (hops + 3) / 4;
  if (by_three * 3 < by_four * 4 &&
      by_three * kWarp <= ForwardForm<Norm, X, Y, 3, 1, kTerms, RowTeam::block>::kThreads) {
    return launch_forward<ForwardForm<Norm, X, Y, 3, 1, kTerms, RowTeam::block>>(call, stream);
  }
  return launch_forward<ForwardForm<Norm, X, Y, 4, 1, kTerms, RowTeam::block>>(call, stream);
}

template <class Norm, typename X, typename Y>
int row_norm_of(const RowNormCall& call, Stream stream) {
  constexpr int kV = kVector<X, Y>;
  const auto general = [&]<int V>() {
    const dim3 grid(static_cast<unsigned>(call.rows), static_cast<unsigned>(call.members.count));
    row_norm_general_kernel<Norm, X, Y, V>
        <<<grid, general_threads(call.width / V), 0, stream>>>(call, 1.0f / static_cast<float>(call.counted));
    return static_cast<int>(cudaGetLastError());
  };
  bool whole =
      call.width % kV == 0 && multiples_of_16(call.members, {call.gain, call.bias, call.y, call.wide_y, call.sum});
  for (int k = 0; k < call.terms; ++k) whole = whole && call.term[k] % 16 == 0;
  if (!whole) return general.template operator()<1>();
  const bool unscaled = kTakesScales<X> || !call.scaled;
  if (call.terms > 2 || call.width > kWidestForward || call.counted % kV != 0 || !unscaled)
    return general.template operator()<kV>();
  return call.terms == 1 ? launch_forward_as<Norm, X, Y, 1>(call, stream)
                         : launch_forward_as<Norm, X, Y, 2>(call, stream);
}

template <class F>
int launch_backward(const RowNormBackwardCall& call, const BackwardLines& lines, Stream stream) {
  constexpr auto kKernel = row_backward_kernel<F>;
  const int shared = F::kSharedBytes * lines.map.threads() + F::kGainBytes;
  const cudaError_t raised = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  if (raised != cudaSuccess) return static_cast<int>(raised);
  const dim3 grid(static_cast<unsigned>(lines.count), static_cast<unsigned>(call.members.count));
  kKernel<<<grid, static_cast<unsigned>(lines.map.threads()), static_cast<unsigned>(shared), stream>>>(
      call, lines.map, 1.0f / static_cast<float>(call.counted));
  return static_cast<int>(cudaGetLastError());
}

template <class Norm, typename X, typename Y, int kResiduals>
int launch_backward_as(const RowNormBackwardCall& call, const BackwardLines& lines, Stream stream) {
  constexpr int kMost = sizeof(X) == 4 ? 4 : 2;
  if constexpr (!Norm::kOneGain) {
    using Form = BackwardForm<Norm, X, Y, 1, kResiduals, Hold::registers, DxSums::lines>;
    if (call.dx_lines >= 0 && sums_short_dx(call.width)) return launch_backward<Form>(call, lines, stream);
  }
  if (lines.pieces == 1) {
    return launch_backward<BackwardForm<Norm, X, Y, 1, kResiduals, Hold::registers>>(call, lines, stream);
  }
  if constexpr (sizeof(X) == 2) {
    if (lines.pieces == 3 && call.dx_lines >= 0) {
      using Form = BackwardForm<Norm, X, Y, 3, kResiduals, Hold::stage, DxSums::lines>;
      if constexpr (!Norm::kOneGain) return launch_backward<Form>(call, lines, stream);
    }
    if (lines.pieces == 3) {
      return launch_backward<BackwardForm<Norm, X, Y, 3, kResiduals, Hold::stage>>(call, lines, stream);
    }
    if (lines.hold == Hold::stage) {
      return launch_backward<BackwardForm<Norm, X, Y, kMost, kResiduals, Hold::stage>>(call, lines, stream);
    }
  }
  if constexpr (sizeof(X) == 4 || kResiduals == 0) {
    return launch_backward<BackwardForm<Norm, X, Y, kMost, kResiduals, Hold::registers>>(call, lines, stream);
  }
  return static_cast<int>(cudaErrorInvalidValue);
}

// dgain and dbias first: dx may lie over x or dy.
template <class Norm, typename X, typename Y, int V>
int launch_backward_general(const RowNormBackwardCall& call, bool sums, Stream stream) {
  const unsigned members = static_cast<unsigned>(call.members.count);
  if (sums && !Norm::kOneGain) {
    const dim3 grid(static_cast<unsigned>((call.width + kWarp * V - 1) / (kWarp * V)),
                    static_cast<unsigned>(general_lines(call.rows, call.width)), members);
    column_sums_kernel<X, Y, V><<<grid, dim3(kWarp, kColumnRows), 0, stream>>>(call);
  }
  const dim3 grid(static_cast<unsigned>(call.rows), members);
  row_backward_general_kernel<Norm, X, Y, V>
      <<<grid, general_threads(call.width / V), 0, stream>>>(call, 1.0f / static_cast<float>(call.counted));
  return static_cast<int>(cudaGetLastError());
}

// By a pass of its own, over whichever width of dx there is.
inline int dx_lines(const RowNormBackwardCall& call, Stream stream) {
  const bool narrow = call.types == RowTypes::bf16 || call.dx < 0;
  return column_lines({.members = call.members,
                       .type = narrow ? DType::bf16 : DType::f32,
                       .rows = call.rows,
                       .width = call.width,
                       .x = call.dx < 0 ? call.narrow_dx : call.dx,
                       .lines = call.dx_lines,
                       .count = call.lines},
                      stream);
}

template <class Norm, typename X, typename Y>
int row_backward_of(const RowNormBackwardCall& call, Stream stream) {
  constexpr int kV = kVector<X, Y>;
  const bool sums = call.dgain >= 0 || call.dbias >= 0;
  LinesCall lines{.members = call.members,
                  .scratch = call.scratch,
                  .lines = general_lines(call.rows, call.width),
                  .stride = 2 * call.width,
                  .width = call.width,
                  .out = {call.dgain, call.dbias}};
  if (Norm::kOneGain) lines = {call.members, call.scratch, call.rows, 1, 1, {call.dgain, kAbsent}};
  bool whole =
      call.width % kV == 0 && multiples_of_16(call.members, {call.x, call.dy, call.gain, call.dx, call.narrow_dx});
  for (int k = 0; k < call.residuals; ++k) whole = whole && call.residual[k] % 16 == 0;
  for (int k = 0; k < call.scaled; ++k) whole = whole && (call.scaled_dx[k] < 0 || call.scaled_dx[k] % 16 == 0);
  int status = 0;
  bool in_place = false;  // whether lines are where they are wanted
  bool sums_dx = false;   // whether those of dx are made on the way
  if (!whole) {
    status = launch_backward_general<Norm, X, Y, 1>(call, sums, stream);
  } else if (call.residuals > 1 || call.width > kWidestBackward || call.counted % kV != 0 ||
             (!kTakesScales<X> && call.scaled > 0)) {
    status = launch_backward_general<Norm, X, Y, kV>(call, sums, stream);
  } else {
    const BackwardLines choice = backward_lines(call.types, call.rows, call.width, call.residuals, call.members.count);
    in_place = call.lines > 0;
    sums_dx = choice.pieces == 3 || sums_short_dx(call.width);
    lines.lines = choice.count;
    lines.stride = 2 * call.width;
    status = call.residuals == 0 ? launch_backward_as<Norm, X, Y, 0>(call, choice, stream)
                                 : launch_backward_as<Norm, X, Y, 1>(call, choice, stream);
  }
  if (status == 0 && call.dx_lines >= 0 && !sums_dx) status = dx_lines(call, stream);
  if (status != 0 || !sums || in_place) return status;
  status = add_lines(lines, stream);
  return status == 0 && call.lines > 0 ? clear_further_lines(lines, call.lines, stream) : status;
}

template <class Norm>
int row_norm(const RowNormCall& call, Stream stream) {
  if (!possible(call.members, call.rows, call.width, call.counted, call.terms) || call.terms < 1) {
    return static_cast<int>(cudaErrorInvalidValue);
  }
  switch (call.types) {
    case RowTypes::f32: return row_norm_of<Norm, float, float>(call, stream);
    case RowTypes::bf16: return row_norm_of<Norm, __nv_bfloat16, __nv_bfloat16>(call, stream);
    case RowTypes::f32_stream_bf16_branch: return row_norm_of<Norm, float, __nv_bfloat16>(call, stream);
  }
  return static_cast<int>(cudaErrorInvalidValue);
}

template <class Norm>
int row_backward(const RowNormBackwardCall& call, Stream stream) {
  const bool scratch = call.scratch >= 0 || (call.dgain < 0 && call.dbias < 0);
  if (call.dx_lines >= 0 &&
      (call.lines == 0 || (call.dgain < 0 && call.dbias < 0) || (call.dx < 0 && call.narrow_dx < 0))) {
    return static_cast<int>(cudaErrorInvalidValue);
  }
  if (call.lines > 0 && (Norm::kOneGain || call.lines < enough_backward_lines(call.rows, call.width))) {
    return static_cast<int>(cudaErrorInvalidValue);
  }
  if (!scratch || !possible(call.members, call.rows, call.width, call.counted, call.residuals)) {
    return static_cast<int>(cudaErrorInvalidValue);
  }
  switch (call.types) {
    case RowTypes::f32: return row_backward_of<Norm, float, float>(call, stream);
    case RowTypes::bf16: return row_backward_of<Norm, __nv_bfloat16, __nv_bfloat16>(call, stream);
    case RowTypes::f32_stream_bf16_branch: return row_backward_of<Norm, float, __nv_bfloat16>(call, stream);
  }
  return static_cast<int>(cudaErrorInvalidValue);
}

}  // namespace norma::cuda
