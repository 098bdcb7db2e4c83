// What the host gives a step: the inputs of all members and which of them are active. The host writes whenever it
// likes; before a run all of it travels in one copy, from one of a few buffers, so that the host can prepare the next
// step while the device still reads the last one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "device/cuda/resources.h"
#include "norma/device/cuda/kernel.h"
#include "norma/graph/plan.h"

namespace norma::cuda {

class Staging {
 public:
  // Inputs lie side by side in each member's memory.
  Staging(const Plan& plan, const Members& members);

  bool holds(std::int64_t offset) const { return offset >= begin_ && offset < end_; }
  void put(int member, std::int64_t offset, std::span<const std::byte> bytes);
  void get(int member, std::int64_t offset, std::span<std::byte> bytes) const;
  void set_active(std::span<const int> active);

  // As Members::active has them.
  const std::uint8_t* active() const { return reinterpret_cast<const std::uint8_t*>(flags_.data()); }
  // Enqueues the copy of what has changed.
  void upload(cudaStream_t stream);

 private:
  void upload_changed(cudaStream_t stream);
  void upload_together(cudaStream_t stream);

  struct Buffer {
    PinnedBytes bytes;
    OwnedEvent copied;
  };
  std::size_t width() const { return static_cast<std::size_t>(end_ - begin_); }

  Members members_;
  std::int64_t begin_ = 0, end_ = 0;  // of the inputs, from a member's base
  std::vector<std::byte> inputs_;     // of all members, as the next run is to see them
  std::vector<std::uint8_t> flag_values_;
  std::vector<bool> changed_;  // by member
  bool inputs_changed_ = false, flags_changed_ = true, large_ = false;
  DeviceBytes flags_;
  std::array<Buffer, 4> ring_;
  std::size_t next_ = 0;
};

}  // namespace norma::cuda
