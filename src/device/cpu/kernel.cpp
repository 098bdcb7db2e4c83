#include "norma/device/cpu/kernel.h"

#include <algorithm>

namespace norma {

Tiling::Tiling(std::int64_t total_items, std::int64_t grain, std::int64_t multiple) : total(total_items) {
  while (tiles < kMaxTiles && total / (2 * tiles) >= grain) tiles *= 2;
  block = (total + tiles - 1) / tiles;
  block = (block + multiple - 1) / multiple * multiple;
  tiles = std::max<std::int64_t>(1, (total + block - 1) / block);
}

}  // namespace norma
