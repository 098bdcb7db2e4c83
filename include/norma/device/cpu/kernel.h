// What an op becomes on the CPU: phases of independent tiles. Tiles follow from shapes alone, never from the number
// of threads, and each tile's arithmetic has a fixed order; that is why results have the same bits on any machine size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace norma {

// The memory of one kernel call for one member.
struct Call {
  std::byte* base = nullptr;              // of the member
  const std::int64_t* offsets = nullptr;  // from there: inputs, then outputs; negative: no memory
  int inputs = 0;
  std::byte* scratch = nullptr;  // CpuKernel::scratch_bytes, shared by all tiles and phases of this call
  std::byte* worker_scratch =
      nullptr;  // CpuKernel::worker_bytes, private to the running thread, not kept between tiles

  template <typename T>
  const T* in(int index) const {
    return reinterpret_cast<const T*>(base + offsets[index]);
  }
  // Null when nobody reads an optional output.
  template <typename T>
  T* out(int index) const {
    const std::int64_t offset = offsets[inputs + index];
    return offset < 0 ? nullptr : reinterpret_cast<T*>(base + offset);
  }
  template <typename T>
  T* shared(std::int64_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(scratch + offset_bytes);
  }
  template <typename T>
  T* worker(std::int64_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(worker_scratch + offset_bytes);
  }
};

// All tiles of a phase may run at once; a phase starts when the one before has finished.
struct Phase {
  std::int64_t tiles = 0;
  std::function<void(const Call&, std::int64_t tile)> run = nullptr;
  double share = 0;  // of the kernel's work, to divide it among threads; 0: not known
  // Of a first phase that writes nothing but scratch: the only input that it reads, so that it may run before the
  // others exist. -1: it reads what it likes.
  int reads_only = -1;
  // Tiles [begin, end) at once, with the same bits, where that is faster than one by one.
  std::function<void(const Call&, std::int64_t begin, std::int64_t end)> run_several = nullptr;

  void run_range(const Call& call, std::int64_t begin, std::int64_t end) const {
    if (run_several != nullptr) return run_several(call, begin, end);
    for (std::int64_t tile = begin; tile < end; ++tile) run(call, tile);
  }
};

struct CpuKernel {
  std::vector<Phase> phases = {};
  std::int64_t scratch_bytes = 0;
  std::int64_t worker_bytes = 0;
};

// Splits `total` items into equal blocks of at least `grain` items, at most kMaxTiles of them, a power of two in
// number so that 2, 4 or 8 threads share them evenly.
struct Tiling {
  static constexpr std::int64_t kMaxTiles = 64;

  std::int64_t total = 0;
  std::int64_t tiles = 1;
  std::int64_t block = 0;

  Tiling(std::int64_t total, std::int64_t grain, std::int64_t multiple = 1);
  std::int64_t begin(std::int64_t tile) const { return tile * block < total ? tile * block : total; }
  std::int64_t end(std::int64_t tile) const { return begin(tile + 1); }
};

}  // namespace norma
