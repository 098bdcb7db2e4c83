// Sums over rows that many tiles share: each tile adds to its own line, a last phase adds the lines in order. The order
// follows from shapes alone, so the bits do not depend on threads.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

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

template <typename T>
struct Total {
  Partials<T> partials;
  int output = 0;
};

// Appends the phase that writes out(output) = sum of the lines, for all these outputs that somebody reads.
template <typename T>
void add_total_phase(CpuKernel& kernel, const std::vector<Total<T>>& totals) {
  struct Part {
    Total<T> total;
    std::int64_t begin, end;  // of the width
  };
  std::vector<Part> parts;
  Touched touched;
  for (const Total<T>& total : totals) {
    const Tiling tiling(total.partials.width, 1024, 64);
    for (std::int64_t tile = 0; tile < tiling.tiles; ++tile)
      parts.push_back({total, tiling.begin(tile), tiling.end(tile)});
    touched.outputs.push_back(total.output);
  }
  if (parts.empty()) return;
  const auto count = static_cast<std::int64_t>(parts.size());
  const auto run = [parts = std::move(parts), sum = sum_lines<T>()](const Call& call, std::int64_t tile) {
    const auto& [total, begin, end] = parts[static_cast<std::size_t>(tile)];
    const Partials<T>& lines = total.partials;
    if (T* const to = call.out<T>(total.output); to != nullptr)
      sum(lines.line(call, 0), lines.tiles, lines.stride(), begin, end, to);
  };
  kernel.phases.push_back({.tiles = count, .run = run, .touches = std::move(touched)});
}

}  // namespace norma
