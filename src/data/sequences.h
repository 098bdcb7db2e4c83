// Many token sequences in one block of memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace norma {

class Sequences {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()) - 1; }
  void add(std::span<const std::int32_t> tokens) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    ends_.push_back(tokens_.size());
  }
  std::span<const std::int32_t> operator[](std::int64_t i) const {
    const auto at = static_cast<std::size_t>(i);
    return {tokens_.data() + ends_[at], ends_[at + 1] - ends_[at]};
  }

 private:
  std::vector<std::int32_t> tokens_;
  std::vector<std::size_t> ends_{0};
};

}  // namespace norma
