// A read-only run of tokens in memory, of 1, 2 or 4 bytes each, with what keeps that memory alive.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "norma/core/error.h"

namespace norma {

class TokenView {
 public:
  enum class Width { byte = 1, half = 2, word = 4 };

  TokenView() = default;
  TokenView(const void* data, std::int64_t size, Width width, std::shared_ptr<const void> owner)
      : data_(static_cast<const unsigned char*>(data)), size_(size), width_(width), owner_(std::move(owner)) {}

  static TokenView of(std::vector<std::int32_t> tokens) {
    auto owner = std::make_shared<const std::vector<std::int32_t>>(std::move(tokens));
    return {owner->data(), static_cast<std::int64_t>(owner->size()), Width::word, owner};
  }

  std::int64_t size() const { return size_; }

  TokenView slice(std::int64_t begin, std::int64_t end) const {
    NORMA_ASSERT(0 <= begin && begin <= end && end <= size_);
    return {data_ + begin * static_cast<int>(width_), end - begin, width_, owner_};
  }

  void copy(std::int64_t begin, std::int64_t count, std::int32_t* out) const {
    NORMA_ASSERT(begin >= 0 && count >= 0 && begin + count <= size_);
    const unsigned char* from = data_ + begin * static_cast<int>(width_);
    switch (width_) {
      case Width::byte:
        for (std::int64_t i = 0; i < count; ++i) out[i] = from[i];
        break;
      case Width::half:
        for (std::int64_t i = 0; i < count; ++i) out[i] = from[2 * i] | from[2 * i + 1] << 8;  // little-endian
        break;
      case Width::word: std::memcpy(out, from, static_cast<std::size_t>(count) * 4); break;
    }
  }

 private:
  const unsigned char* data_ = nullptr;
  std::int64_t size_ = 0;
  Width width_ = Width::byte;
  std::shared_ptr<const void> owner_;
};

}  // namespace norma
