#include "device/cpu/gemm_tiles.h"

#include <algorithm>

namespace norma {
namespace {

// A weight gradient has as few rows as the model is wide and sums over all tokens: four blocks of rows at width 128,
// each as much work as four tiles of its neighbours. Blocks of 48 columns cost 2 to 4 % (the widths of the library's
// kernels divide 48; 64 costs 12 %). A product that is one block of rows stays whole: dense operands have other
// kernels, which round differently.
std::int64_t column_block(const GemmShape& shape, std::int64_t row_tiles) {
  constexpr std::int64_t kColumns = 48, kEnoughTiles = 16;
  constexpr std::int64_t kLeastWork = 1 << 20;  // multiply-adds
  const std::int64_t rows = shape.m / row_tiles;
  if (row_tiles == 1 || row_tiles >= kEnoughTiles || shape.n < 2 * kColumns || rows * kColumns * shape.k < kLeastWork)
    return shape.n;
  const std::int64_t most = Tiling::kMaxTiles / row_tiles;
  return kColumns * std::max<std::int64_t>(1, (shape.n + kColumns * most - 1) / (kColumns * most));
}

}  // namespace

GemmTiles::GemmTiles(const GemmShape& shape, DType dtype, Cut cut, std::int64_t summed)
    : shape_(shape),
      element_(static_cast<std::int64_t>(size_of(dtype))),
      rows_(shape.m, gemm_tile_grain(shape.n, summed, cut == Cut::rows ? 64 : 32), 16),
      columns_(cut == Cut::rows ? shape.n : column_block(shape, rows_.tiles)),
      across_((shape.n + columns_ - 1) / columns_) {
  for (const bool bottom : {false, true}) {
    for (const bool right : {false, true}) {
      const Block block = this->block((bottom ? rows_.tiles - 1 : 0) * across_ + (right ? across_ - 1 : 0));
      GemmShape tile = shape;
      tile.m = block.rows;
      tile.n = block.columns;
      gemms_[bottom][right] = make_gemm(tile, dtype);
    }
  }
}

std::int64_t GemmTiles::worker_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& pair : gemms_) {
    for (const auto& gemm : pair) bytes = std::max(bytes, gemm->worker_bytes());
  }
  return bytes;
}

GemmPanels GemmTiles::panels() const {
  const GemmPanels panels = gemms_[0][0]->panels();
  for (const auto& pair : gemms_) {
    for (const auto& gemm : pair) {
      if (gemm->panels() != panels) return {};
    }
  }
  return panels;
}

GemmTiles::Block GemmTiles::block(std::int64_t tile) const {
  const std::int64_t down = tile / across_, column = tile % across_ * columns_;
  return {rows_.begin(down), rows_.end(down) - rows_.begin(down), column, std::min(columns_, shape_.n - column)};
}

void GemmTiles::run(std::int64_t tile, const void* a, const void* b, void* c, std::byte* worker) const {
  const Block at = block(tile);
  const bool bottom = tile / across_ + 1 == rows_.tiles, right = tile % across_ + 1 == across_;
  gemms_[bottom][right]->run(static_cast<const std::byte*>(a) + at.row * shape_.a_row * element_,
                             static_cast<const std::byte*>(b) + at.column * shape_.b_column * element_, nullptr,
                             static_cast<std::byte*>(c) + (at.row * shape_.c_row + at.column) * element_, worker);
}

}  // namespace norma
