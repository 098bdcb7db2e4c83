// Byte-pair encoding of one piece: tokens merge pair by pair, lowest rank first, leftmost among equals.
#pragma once

#include <cstdint>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace norma {

struct Merge {
  std::int32_t rank, token;
};

class BytePairs {
 public:
  void set_byte(unsigned char byte, std::int32_t token) { bytes_[byte] = token; }
  // Later merges of the same pair are ignored.
  void add_merge(std::int32_t left, std::int32_t right, Merge merge) { merges_.emplace(key(left, right), merge); }
  std::size_t merges() const { return merges_.size(); }

  // Appends the tokens of `piece`; O(n log n), so that a megabyte without spaces is no trap.
  void encode(std::string_view piece, std::vector<std::int32_t>& tokens) const;

 private:
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }

  std::int32_t bytes_[256] = {};
  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace norma
