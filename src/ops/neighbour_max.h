// What the largest of neighbours and of segments share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "norma/ops/neighbours.h"

namespace norma {

// Where there is nothing to choose from: 0, and the number behind the last row.
template <typename T>
void start_largest(T* y, std::int32_t* picks, std::int64_t width, std::int64_t rows) {
  std::fill_n(y, width, T{0});
  if (picks != nullptr) std::fill_n(picks, width, static_cast<std::int32_t>(rows));
}

// y and picks take what is larger in `row`, or all of it where it is the first. Without branches inside, so that the
// compiler makes vectors of it.
template <typename T>
void keep_larger(const T* row, std::int32_t number, bool first, T* y, std::int32_t* picks, std::int64_t width) {
  if (first) {
    std::copy_n(row, width, y);
    if (picks != nullptr) std::fill_n(picks, width, number);
  } else if (picks == nullptr) {
    for (std::int64_t c = 0; c < width; ++c) y[c] = row[c] > y[c] || row[c] != row[c] ? row[c] : y[c];
  } else {
    for (std::int64_t c = 0; c < width; ++c) picks[c] = row[c] > y[c] || row[c] != row[c] ? number : picks[c];
    for (std::int64_t c = 0; c < width; ++c) y[c] = row[c] > y[c] || row[c] != row[c] ? row[c] : y[c];
  }
}

// x[rows, ...], members[sets, rows]: positive where a row belongs to a set -> the largest of each set and
// which row it is, as NeighbourMax has them
Wires largest_by_membership(Wire x, Wire members);

Wire picked_rows(PickedRows::Way way, std::int64_t rows, Wire x, Wire picks);

}  // namespace norma
