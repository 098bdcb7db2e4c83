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

// Blocks of columns that are gone through together: the library copies its part of A once for all of them. Never all of
// a product that has several, for that would be dense.
constexpr std::int64_t kGroup = 4;

}  // namespace

GemmTiles::GemmTiles(const GemmShape& shape, DType dtype, Cut cut, std::int64_t summed)
    : shape_(shape),
      element_(static_cast<std::int64_t>(size_of(dtype))),
      rows_(shape.m, gemm_tile_grain(shape.n, summed, cut == Cut::rows ? 64 : 32), 16),
      columns_(cut == Cut::rows ? shape.n : column_block(shape, rows_.tiles)),
      across_((shape.n + columns_ - 1) / columns_),
      group_(std::clamp<std::int64_t>(across_ - 1, 1, kGroup)) {
  const auto make = [&](std::int64_t height, std::int64_t width) {
    GemmShape tile = shape;
    tile.m = height;
    tile.n = width;
    return make_gemm(tile, dtype);
  };
  const std::int64_t last_group = (across_ - 1) / group_ * group_ * columns_;  // its first column
  for (const bool bottom : {false, true}) {
    const std::int64_t down = bottom ? rows_.tiles - 1 : 0, height = rows_.end(down) - rows_.begin(down);
    gemms_[bottom] = {make(height, std::min(columns_, shape.n)), make(height, shape.n - (across_ - 1) * columns_)};
    wide_[bottom] = {make(height, std::min(group_ * columns_, shape.n)), make(height, shape.n - last_group)};
  }
}

std::int64_t GemmTiles::worker_bytes() const {
  std::int64_t bytes = 0;
  for (const auto* gemms : {&gemms_, &wide_}) {
    for (const auto& pair : *gemms) {
      for (const auto& gemm : pair) bytes = std::max(bytes, gemm->worker_bytes());
    }
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

GemmTiles::Place GemmTiles::place(std::int64_t tile) const {
  const std::int64_t group = tile / (rows_.tiles * group_), inside = tile % (rows_.tiles * group_);
  const std::int64_t blocks = group_at(group * group_);
  return {inside / blocks, group * group_ + inside % blocks, blocks - inside % blocks};
}

GemmTiles::Block GemmTiles::block(std::int64_t tile) const {
  const Place at = place(tile);
  const std::int64_t column = at.across * columns_;
  return {rows_.begin(at.down), rows_.end(at.down) - rows_.begin(at.down), column,
          std::min(columns_, shape_.n - column)};
}

void GemmTiles::run(std::int64_t begin, std::int64_t end, const void* a, const void* b, void* c,
                    std::byte* worker) const {
  for (std::int64_t tile = begin; tile < end;) {
    const Place at = place(tile);
    const bool whole = at.left == group_at(at.across) && tile + at.left <= end, bottom = at.down + 1 == rows_.tiles;
    const std::int64_t blocks = whole ? at.left : 1, row = rows_.begin(at.down), column = at.across * columns_;
    const bool right = at.across + blocks == across_;
    (whole ? wide_ : gemms_)[bottom][right]->run(
        static_cast<const std::byte*>(a) + row * shape_.a_row * element_,
        static_cast<const std::byte*>(b) + column * shape_.b_column * element_, nullptr,
        static_cast<std::byte*>(c) + (row * shape_.c_row + column) * element_, worker);
    tile += blocks;
  }
}

}  // namespace norma
