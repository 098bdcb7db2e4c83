#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <vector>

#include "device/cuda/resources.h"

namespace norma::cuda {
namespace {

constexpr std::size_t kSmallest = 4096, kLargestKept = std::size_t{1} << 20, kMostKept = std::size_t{128} << 20;

std::size_t rounded(std::size_t bytes) { return std::bit_ceil(std::max(bytes, kSmallest)); }

struct Kept {
  std::mutex mutex;
  std::map<std::size_t, std::vector<void*>> by_size;
  std::size_t bytes = 0;
};
Kept& kept() {
  static Kept* const all = new Kept;  // outlives every session; the driver takes the memory back at the end
  return *all;
}

}  // namespace

void* take_pinned(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    if (std::vector<void*>& free = all.by_size[size]; !free.empty()) {
      void* const memory = free.back();
      free.pop_back();
      all.bytes -= size;
      return memory;
    }
  }
  void* memory = nullptr;
  check(cudaMallocHost(&memory, size), "taking memory of the host that the GPU can reach");
  return memory;
}

void keep_pinned(void* memory, std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    if (size <= kLargestKept && all.bytes + size <= kMostKept) {
      all.by_size[size].push_back(memory);
      all.bytes += size;
      return;
    }
  }
  cudaFreeHost(memory);
}

}  // namespace norma::cuda
