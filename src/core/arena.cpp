#include "norma/core/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <utility>

#include "core/memory_limit.h"
#include "norma/core/error.h"

namespace norma {
namespace {

// First number after `key` in a "Key:  value kB" file, in bytes.
std::int64_t read_meminfo(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::int64_t kib = 0;
    if (word == key + ":" && file >> kib) return kib * 1024;
  }
  return kNoMemoryLimit;
}

}  // namespace

std::int64_t available_memory() { return std::min({read_meminfo("MemAvailable"), cgroup_memory(), address_space()}); }

void require_memory(std::int64_t bytes, std::string_view what) {
  const std::int64_t available = available_memory();
  if (bytes <= available) return;
  fail(
      "out of memory: {} needs {}, but {} are available here; a smaller batch, width or depth, fewer members or fewer "
      "threads take less",
      what, describe_bytes(bytes), describe_bytes(available));
}

std::string describe_bytes(std::int64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

Arena::Arena(std::int64_t bytes) : bytes_(align_up(bytes)) {
  NORMA_ASSERT(bytes >= 0);
  if (bytes == 0) return;
  // Refuse early: Linux overcommits, and the out-of-memory killer gives no message.
  const std::int64_t available = available_memory();
  if (bytes_ > available) {
    fail("the plan needs {} but this machine has {} available", describe_bytes(bytes_), describe_bytes(available));
  }
  void* memory =
      mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("the operating system refused {} of memory", describe_bytes(bytes_));
  madvise(memory, static_cast<std::size_t>(bytes_), MADV_HUGEPAGE);  // a hint; failure costs only speed
  data_ = static_cast<std::byte*>(memory);
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Arena::~Arena() {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
}

}  // namespace norma
