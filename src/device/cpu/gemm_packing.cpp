#include "device/cpu/gemm_packing.h"

#include <algorithm>

#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::int64_t kRows = 16;   // of a piece: as many as a transposed B has floats in a cache line
constexpr std::int64_t kPieces = 4;  // of a tile at least; some microseconds

}  // namespace

GemmPacking::GemmPacking(const GemmShape& shape, const GemmPanels& panels)
    : shape_(shape),
      panels_(panels),
      pieces_((panels.depth + kRows - 1) / kRows),
      tiling_(panels.count * pieces_, kPieces) {}

void GemmPacking::run(std::int64_t tile, const float* b, float* packed) const {
  for (std::int64_t piece = tiling_.begin(tile); piece < tiling_.end(tile); ++piece) {
    const std::int64_t row = piece % pieces_ * kRows;
    pack_piece(b, packed, piece / pieces_, row, std::min(kRows, panels_.depth - row));
  }
}

void GemmPacking::pack_piece(const float* b, float* packed, std::int64_t panel, std::int64_t row,
                             std::int64_t rows) const {
  const std::int64_t width = panels_.width, first = panel * width;
  const std::int64_t columns = std::min(width, shape_.n - first),
                     real_rows = std::clamp<std::int64_t>(shape_.k - row, 0, rows);
  float* const to = packed + (panel * panels_.depth + row) * width;
  if (columns < width || real_rows < rows) std::fill_n(to, rows * width, 0.0f);
  const float* const from = b + row * shape_.b_row + first * shape_.b_column;
  if (shape_.b_column == 1) {
    for (std::int64_t r = 0; r < real_rows; ++r) std::copy_n(from + r * shape_.b_row, columns, to + r * width);
    return;
  }
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < real_rows; ++r) to[r * width + c] = from[c * shape_.b_column + r * shape_.b_row];
  }
}

double add_packing(CpuKernel& kernel, const GemmShape& shape, const GemmPanels& panels) {
  constexpr double kOperationsPerMove = 30;  // that take as long as moving one element
  const GemmPacking packing(shape, panels);
  const double share = kOperationsPerMove / (kOperationsPerMove + 2.0 * static_cast<double>(shape.m));
  const auto pack = [packing](const Call& call, std::int64_t tile) {
    packing.run(tile, call.in<float>(1), call.shared<float>());
  };
  NORMA_ASSERT(kernel.phases.empty() && kernel.scratch_bytes == 0);
  kernel.scratch_bytes = packing.bytes();
  kernel.phases.push_back({.tiles = packing.tiles(), .run = pack, .share = share, .reads_only = 1});
  return share;
}

}  // namespace norma
