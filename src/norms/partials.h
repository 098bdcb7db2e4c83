// Sums over rows that many tiles share: each tile adds to its own line, a last phase adds the lines in order. The order
// follows from shapes alone, so the bits do not depend on threads.
#pragma once

#include <cstdint>

#include "norma/core/arena.h"
#include "norma/device/cpu/kernel.h"

namespace norma {

// One line of `width` numbers per tile in a kernel's shared scratch.
template <typename T>
struct Partials {
  std::int64_t offset = 0;  // bytes from the start of the scratch
  std::int64_t width = 0;
  std::int64_t tiles = 0;

  // Reserves room at the end of the scratch, an odd number of cache lines after what is there: two sums of one width
  // would otherwise lie at the same place of their pages, and each load of one would wait for a store to the other.
  Partials(CpuKernel& kernel, std::int64_t line_width, std::int64_t tile_count)
      : offset(kernel.scratch_bytes + 17 * kArenaAlignment), width(line_width), tiles(tile_count) {
    kernel.scratch_bytes = offset + align_up(stride() * tiles * static_cast<std::int64_t>(sizeof(T)));
  }
  // Lines do not share a cache line.
  std::int64_t stride() const {
    return align_up(width * static_cast<std::int64_t>(sizeof(T))) / static_cast<std::int64_t>(sizeof(T));
  }
  T* line(const Call& call, std::int64_t tile) const { return call.shared<T>(offset) + tile * stride(); }
};

// total[begin, end) = the lines of `partials`, added in order
template <typename T>
using SumLines = void (*)(const T* lines, std::int64_t count, std::int64_t stride, std::int64_t begin, std::int64_t end,
                          T* total);
template <typename T>
SumLines<T> sum_lines();  // for this machine

// Appends the phase that writes out(index) = sum of the lines, unless nobody reads that output.
template <typename T>
void add_total_phase(CpuKernel& kernel, const Partials<T>& partials, int output) {
  const Tiling tiling(partials.width, 1024, 64);
  kernel.phases.push_back({tiling.tiles, [=, run = sum_lines<T>()](const Call& call, std::int64_t tile) {
                             T* const total = call.out<T>(output);
                             if (total == nullptr) return;
                             run(partials.line(call, 0), partials.tiles, partials.stride(), tiling.begin(tile),
                                 tiling.end(tile), total);
                           }});
}

}  // namespace norma
