#include "device/cpu/tiled_product.h"

namespace norma {
namespace {

constexpr std::int64_t kEnoughTiles = 16;
constexpr std::int64_t kManyRows = 64, kFewRows = 32;  // of a block: fewer are not worth the call
constexpr std::int64_t kFewColumns = 64;               // four vectors of AVX-512, what an inner kernel keeps
constexpr std::int64_t kTileProducts = 1 << 18;        // about 4 microseconds on one core; a barrier takes one or two

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

TiledProduct::TiledProduct(const GemmShape& shape, DType dtype)
    : shape_(shape), element_(static_cast<std::int64_t>(size_of(dtype))) {
  const std::int64_t least = shape.m >= kEnoughTiles * kManyRows ? kManyRows : kFewRows;
  const std::int64_t by_work = kTileProducts / (shape.n * shape.k);
  rows_ = {shape.m, std::min(shape.m, round_up(std::max(least, by_work), 16))};
  columns_ = {shape.n, shape.n};
  // Weight gradients have few rows and long sums. Each tile turns its share of A anew, so no more columns are cut than
  // needed; copying A once for all tiles was tried and lost 10 to 25 %.
  while (tiles() < kEnoughTiles && columns_.size > kFewColumns &&
         rows_.size * columns_.size * shape.k > 2 * kTileProducts) {
    columns_.size = round_up((columns_.size + 1) / 2, kFewColumns);
  }
  for (const bool last_row : {false, true}) {
    for (const bool last_column : {false, true}) {
      GemmShape tile = shape;
      tile.m = rows_.length(last_row ? rows_.count() - 1 : 0);
      tile.n = columns_.length(last_column ? columns_.count() - 1 : 0);
      gemms_[last_row][last_column] = make_gemm(tile, dtype);
    }
  }
}

std::int64_t TiledProduct::worker_bytes() const {
  std::int64_t most = 0;
  for (const auto& pair : gemms_) {
    for (const auto& gemm : pair) most = std::max(most, gemm->worker_bytes());
  }
  return most;
}

TiledProduct::Block TiledProduct::block(std::int64_t tile) const {
  const std::int64_t row = tile / columns_.count(), column = tile % columns_.count();
  return {rows_.at(row), rows_.length(row), columns_.at(column), columns_.length(column)};
}

void TiledProduct::run(std::int64_t tile, const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* c,
                       std::byte* worker) const {
  const std::int64_t row = tile / columns_.count(), column = tile % columns_.count();
  const Block at = block(tile);
  gemms_[rows_.last(row)][columns_.last(column)]->run(a + at.row * shape_.a_row * element_,
                                                      b + at.column * shape_.b_column * element_,
                                                      bias == nullptr ? nullptr : bias + at.column * element_,
                                                      c + (at.row * shape_.c_row + at.column) * element_, worker);
}

}  // namespace norma
