// What a sparse product has found in a row: how many numbers (-1: not listed), their places, their bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace norma {

// `words` of a row, with room for so many numbers. T is const for a list that is read.
template <typename T>
struct ListedRow {
  using Word = std::conditional_t<std::is_const_v<T>, const std::int32_t, std::int32_t>;
  using Number = std::remove_const_t<T>;

  Word* words = nullptr;
  std::int64_t room = 0;

  static constexpr std::int64_t kWords = sizeof(T) / sizeof(std::int32_t);  // of a number
  std::int64_t size() const { return 1 + room * (1 + kWords); }             // in words

  void add(std::int64_t index, std::int64_t place, Number number) const {
    words[1 + index] = static_cast<std::int32_t>(place);
    std::memcpy(words + 1 + room + index * kWords, &number, sizeof(number));
  }
  std::int64_t place(std::int64_t index) const { return words[1 + index]; }
  Number number(std::int64_t index) const {
    Number number;
    std::memcpy(&number, words + 1 + room + index * kWords, sizeof(number));
    return number;
  }
};

}  // namespace norma
