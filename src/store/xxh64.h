// XXH64 (Collet 2012), streaming: the checksum of checkpoints. `xxhsum -H1` computes the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace norma {

class Xxh64 {
 public:
  explicit Xxh64(std::uint64_t seed = 0);

  void update(std::span<const std::byte> bytes);
  std::uint64_t digest() const;

 private:
  static constexpr std::size_t kStripe = 32;  // bytes; eight for each lane

  void consume_stripe(const std::byte* stripe);

  std::array<std::uint64_t, 4> lanes_;
  std::array<std::byte, kStripe> pending_{};
  std::size_t pending_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::uint64_t seed_;
};

}  // namespace norma
