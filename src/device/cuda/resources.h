// Memory, streams and events of the GPU, each with an owner.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <utility>

#include "device/cuda/check.h"

namespace norma::cuda {

// Something that the runtime hands out and takes back.
template <typename Held, cudaError_t (*kGiveBack)(Held)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Held held) : held_(held) {}
  Owned(Owned&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Owned() {
    if (held_ != nullptr) kGiveBack(held_);
  }

  Held get() const { return held_; }
  explicit operator bool() const { return held_ != nullptr; }

 private:
  Held held_ = nullptr;
};

using OwnedStream = Owned<cudaStream_t, cudaStreamDestroy>;
using OwnedEvent = Owned<cudaEvent_t, cudaEventDestroy>;
using OwnedGraph = Owned<cudaGraph_t, cudaGraphDestroy>;
using OwnedExecutable = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using OwnedDeviceMemory = Owned<void*, cudaFree>;

inline OwnedStream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "opening a stream");
  return OwnedStream(stream);
}

inline OwnedEvent make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return OwnedEvent(event);
}

// Bytes on the device; none is taken for a size of 0.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  explicit DeviceBytes(std::size_t bytes) {
    void* memory = nullptr;
    if (bytes > 0) check(cudaMalloc(&memory, bytes), "taking memory on the GPU");
    memory_ = OwnedDeviceMemory(memory);
  }
  std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }

 private:
  OwnedDeviceMemory memory_;
};

// Of the host's bytes, before anything that the stream does next. A plain cudaMemcpy would not do: it may return before
// the bytes have arrived, and streams that do not block wait for nothing of it.
inline void copy_to_device(const DeviceBytes& to, std::span<const std::byte> bytes, cudaStream_t stream) {
  if (bytes.empty()) return;
  check(cudaMemcpyAsync(to.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream), "copying to the GPU");
  check(cudaStreamSynchronize(stream), "copying to the GPU");
}

// Pinned memory in powers of two. Taking it is slow, and sessions come and go by the thousand, so small pieces are kept
// for the next one.
void* take_pinned(std::size_t bytes);
void keep_pinned(void* memory, std::size_t bytes);

// Bytes of the host that the device copies from and to by itself. Whoever gives them back has waited for those copies.
class PinnedBytes {
 public:
  PinnedBytes() = default;
  explicit PinnedBytes(std::size_t bytes) : memory_(bytes > 0 ? take_pinned(bytes) : nullptr), size_(bytes) {}
  PinnedBytes(PinnedBytes&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  PinnedBytes& operator=(PinnedBytes&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~PinnedBytes() {
    if (memory_ != nullptr) keep_pinned(memory_, size_);
  }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), size_}; }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace norma::cuda
