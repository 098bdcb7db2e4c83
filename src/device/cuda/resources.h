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
using OwnedPinnedMemory = Owned<void*, cudaFreeHost>;

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

// Bytes of the host that the device copies from and to by itself.
class PinnedBytes {
 public:
  PinnedBytes() = default;
  explicit PinnedBytes(std::size_t bytes) : size_(bytes) {
    void* memory = nullptr;
    if (bytes > 0) check(cudaMallocHost(&memory, bytes), "taking memory of the host that the GPU can reach");
    memory_ = OwnedPinnedMemory(memory);
  }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_.get()), size_}; }

 private:
  OwnedPinnedMemory memory_;
  std::size_t size_ = 0;
};

}  // namespace norma::cuda
