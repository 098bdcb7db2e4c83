// Ids of nodes and values are ints; containers count in std::size_t.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace norma {

inline std::size_t at(int id) { return static_cast<std::size_t>(id); }

// A list of ints for each of `keys` keys, in two allocations instead of one per key. Lists keep the order of the pairs.
class Lists {
 public:
  Lists(std::size_t keys, std::span<const std::pair<int, int>> pairs) : begin_(keys + 1, 0), items_(pairs.size()) {
    for (const auto& [key, item] : pairs) ++begin_[at(key) + 1];
    for (std::size_t key = 0; key < keys; ++key) begin_[key + 1] += begin_[key];
    std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
    for (const auto& [key, item] : pairs) items_[next[at(key)]++] = item;
  }
  std::span<const int> operator[](int key) const {
    return std::span(items_).subspan(begin_[at(key)], begin_[at(key) + 1] - begin_[at(key)]);
  }

 private:
  std::vector<std::size_t> begin_;
  std::vector<int> items_;
};

}  // namespace norma
