// Names as keys: a stable hash, and the nearest known name for an unknown one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace norma {

// 64-bit FNV-1a. Stable across machines and versions: random streams and checkpoints are keyed by it.
constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ull;
  }
  return hash;
}

// The candidate with the smallest edit distance to `name`, or "" when none is close enough to be a slip of the hand.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

// " (did you mean 'nearest'?)" or "".
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace norma
