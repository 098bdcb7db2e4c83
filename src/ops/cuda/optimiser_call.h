// What the optimiser's kernels are told: tables of parameters and of their pieces, on the device.
#pragma once

#include <cstdint>

#include "norma/device/cuda/kernel.h"
#include "norma/ops/optimiser.h"

namespace norma {

struct OptimiserParameter {
  std::int64_t p, g, m, v;     // offsets; where there is one state, m and v are both of it
  float lr, eps, shrink, l2;   // of its group
  std::int64_t rows, width;    // of p as a matrix
  std::int64_t first, pieces;  // OptimiserPieces of it
  std::int32_t wide;           // whether all four are aligned to 16 bytes
  std::int32_t unit;           // UnitVectors
};

struct OptimiserPiece {
  std::int64_t parameter;
  std::int64_t begin;  // element, row or column
};

struct OptimiserCall {
  cuda::Members members = {};
  const OptimiserParameter* parameters = nullptr;
  const OptimiserPiece* pieces = nullptr;  // of kOptimiserPiece elements
  const OptimiserPiece* units = nullptr;   // of kWarp rows or columns
  std::int64_t control = 0, scale = 0;
  std::int64_t sums = cuda::kAbsent;     // f64 [pieces], if squares are wanted
  std::int64_t squares = cuda::kAbsent;  // f64 [parameters]
};

constexpr std::int64_t kOptimiserPiece = 4096;

int launch_update(OptimiserKind kind, const OptimiserCall& call, std::int64_t pieces, cuda::Stream stream);
int launch_units(const OptimiserCall& call, std::int64_t units, cuda::Stream stream);
int launch_squares(const OptimiserCall& call, std::int64_t parameters, cuda::Stream stream);

}  // namespace norma
