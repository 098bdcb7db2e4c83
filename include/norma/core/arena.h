// One block of zeroed, cache-line-aligned memory whose size is known before anything runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace norma {

constexpr std::int64_t kArenaAlignment = 64;  // bytes; one cache line, one AVX-512 vector

constexpr std::int64_t align_up(std::int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

class Arena {
 public:
  Arena() = default;
  explicit Arena(std::int64_t bytes);  // throws Error when the machine does not have that much memory
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// Memory that this process could still take: free plus reclaimable, within the limits of its control groups and of its
// address space.
std::int64_t available_memory();

// Throws Error where so many bytes are not available; `what` needs them.
void require_memory(std::int64_t bytes, std::string_view what);

std::string describe_bytes(std::int64_t bytes);  // "1.5 GiB"

}  // namespace norma
