// Putting together what Program::table gives.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

namespace norma::cuda {

constexpr std::size_t kTableAlignment = 16;

// Appends entries at a multiple of kTableAlignment.
template <typename Entry>
void append_to_table(std::vector<std::byte>& table, const std::vector<Entry>& entries) {
  const std::size_t begin = (table.size() + kTableAlignment - 1) / kTableAlignment * kTableAlignment;
  table.resize(begin + entries.size() * sizeof(Entry));
  if (!entries.empty()) std::memcpy(table.data() + begin, entries.data(), entries.size() * sizeof(Entry));
}

// Where entries begin that are appended after `count` of another kind, which begin at `begin`.
template <typename Entry>
std::size_t next_in_table(std::size_t begin, std::size_t count) {
  return (begin + count * sizeof(Entry) + kTableAlignment - 1) / kTableAlignment * kTableAlignment;
}

}  // namespace norma::cuda
