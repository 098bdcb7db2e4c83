// The row norms on a GPU: what a launch is told, and the launches of each norm. Formulas and policies are those of
// norms/row_norm-inl.h and norms/row_gradient-inl.h; nothing here knows graphs, plans or sessions.
//
// Tensors are [member, row, channel]. A launch only enqueues; it returns 0 or a cudaError_t. Whatever it decides
// follows from rows, width, types and the number of members, so a member's results do not depend on who its neighbours
// are, and two runs give the same bits. An output may lie where an input of the same element type lies (y or sum over a
// term; dx over x, dy or a residual). 16-byte accesses need offsets, stride and base that are multiples of 16 and rows
// of whole 16 bytes; everything else works, slower.
#pragma once

#include <cstddef>
#include <cstdint>

#include "norma/device/cuda/kernel.h"

namespace norma::cuda {

constexpr int kMostRowTerms = 8;

// Element types of the residual stream (x, the first term, sum, dx, residuals) and of the branch (y, dy, further
// terms). Parameters, their gradients and statistics are f32.
enum class RowTypes { f32, bf16, f32_stream_bf16_branch };

// What a term or a gradient is multiplied by: one number, or one for each channel. Absent: 1.
struct RowScale {
  std::int64_t at = kAbsent;  // f32 [1] or [width]
  bool per_channel = false;
};

// y = gain (s - mean) rstd + bias, s = the sum of the terms, each times its scale, rounded to the stream's type
struct RowNormCall {
  Members members;
  RowTypes types = RowTypes::f32;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t counted = 0;  // channels, from the first on, that statistics are taken over; width if the norm centres
  int terms = 1;
  std::int64_t term[kMostRowTerms] = {};  // [rows, width] each
  bool scaled = false;                    // whether any term has a scale
  RowScale scale[kMostRowTerms] = {};
  std::int64_t eps = 0;           // f32 [1]
  std::int64_t gain = kAbsent;    // f32 [width], or [1] if the norm has one gain
  std::int64_t bias = kAbsent;    // f32 [width]
  std::int64_t y = kAbsent;       // [rows, width]
  std::int64_t wide_y = kAbsent;  // the same in the stream's type, where that is wider
  std::int64_t rstd = kAbsent;    // f32 [rows]
  std::int64_t mean = kAbsent;    // f32 [rows], if the norm centres
  std::int64_t sum = kAbsent;     // [rows, width]
  bool relu = false;              // of y
};

// dx = rstd (g - mean(g) - xh pull sum(g xh)) + residuals,  g = gain dy
// dgain = sum over rows of dy xh,  dbias = sum over rows of dy
struct RowNormBackwardCall {
  Members members;
  RowTypes types = RowTypes::f32;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t counted = 0;
  std::int64_t x = 0;           // [rows, width]
  std::int64_t dy = 0;          // [rows, width]
  std::int64_t eps = 0;         // f32 [1]
  std::int64_t rstd = 0;        // f32 [rows]
  std::int64_t mean = kAbsent;  // f32 [rows], if the norm centres
  std::int64_t gain = kAbsent;
  int residuals = 0;
  std::int64_t residual[kMostRowTerms] = {};  // [rows, width] each
  int scaled = 0;                             // further gradients: dx with the residuals, times a scale
  RowScale scale[kMostRowTerms] = {};
  std::int64_t scaled_dx[kMostRowTerms] = {};  // [rows, width] each; any may be absent
  std::int64_t dx = kAbsent;                   // [rows, width]
  std::int64_t narrow_dx = kAbsent;            // the same in bf16, where the stream is f32
  std::int64_t dgain = kAbsent;                // f32 [width], or [1] if the norm has one gain
  std::int64_t dbias = kAbsent;                // f32 [width]
  std::int64_t lines = 0;                      // > 0: dgain and dbias are [lines, width], partial sums and zeros
  std::int64_t dx_lines = kAbsent;             // f32 [lines, width]: the same of dx with the residuals
  std::int64_t scratch = kAbsent;              // row_backward_scratch() bytes, if dgain or dbias is wanted
};

// Bytes of scratch per member for dgain and dbias: any contents, a multiple of 16.
std::int64_t row_backward_scratch(RowTypes types, std::int64_t rows, std::int64_t width);

// Whether the kernel for a bf16 stream sums dx on its way; elsewhere `dx_lines` is a pass more.
bool sums_dx(std::int64_t width);
// The same of rows that a part of a warp has, of any type.
bool sums_short_dx(std::int64_t width);

// Enough for `lines` of any types.
std::int64_t enough_backward_lines(std::int64_t rows, std::int64_t width);

int layer_norm(const RowNormCall& call, Stream stream);
int layer_norm_backward(const RowNormBackwardCall& call, Stream stream);
int rms_norm(const RowNormCall& call, Stream stream);  // pRMSNorm too
int rms_norm_backward(const RowNormBackwardCall& call, Stream stream);
int scale_norm(const RowNormCall& call, Stream stream);
int scale_norm_backward(const RowNormBackwardCall& call, Stream stream);

}  // namespace norma::cuda
