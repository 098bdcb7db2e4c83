#include "device/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace norma::cuda {
namespace {

constexpr std::size_t kMostBuffered = std::size_t{256} << 20;  // bytes; pages that stay in place take long to get

}  // namespace

Staging::Staging(const Plan& plan, const Members& members) : members_(members) {
  begin_ = std::numeric_limits<std::int64_t>::max();
  for (const std::string& name : plan.slot_names(Role::input)) {
    const Slot& slot = plan.slot(name);
    begin_ = std::min(begin_, slot.offset);
    end_ = std::max(end_, slot.offset + slot.type.bytes());
  }
  if (end_ == 0) begin_ = 0;
  const auto count = static_cast<std::size_t>(members.count);
  inputs_.resize(count * width());
  inputs_changed_ = !inputs_.empty();
  changed_.assign(count, inputs_changed_);
  large_ = inputs_.size() > kMostBuffered;
  flag_values_.assign(count, 1);
  flags_ = DeviceBytes(2 * count);
  for (Buffer& buffer : ring_) {
    buffer.bytes = PinnedBytes((large_ ? 0 : inputs_.size()) + 2 * count);
    buffer.copied = make_event();
  }
}

void Staging::put(int member, std::int64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::byte* const to = inputs_.data() + static_cast<std::size_t>(member) * width() + (offset - begin_);
  if (std::memcmp(to, bytes.data(), bytes.size()) == 0) return;
  std::memcpy(to, bytes.data(), bytes.size());
  inputs_changed_ = changed_[static_cast<std::size_t>(member)] = true;
}

void Staging::get(int member, std::int64_t offset, std::span<std::byte> bytes) const {
  if (bytes.empty()) return;
  std::memcpy(bytes.data(), inputs_.data() + static_cast<std::size_t>(member) * width() + (offset - begin_),
              bytes.size());
}

void Staging::set_active(std::span<const int> active) {
  std::vector<std::uint8_t> flags(flag_values_.size(), 0);
  for (const int member : active) flags[static_cast<std::size_t>(member)] = 1;
  if (flags == flag_values_) return;
  flag_values_ = std::move(flags);
  flags_changed_ = true;
}

// A copy from memory that may be moved returns when its bytes have been taken.
void Staging::upload_changed(cudaStream_t stream) {
  for (std::size_t member = 0; member < changed_.size(); ++member) {
    if (!changed_[member]) continue;
    check(cudaMemcpyAsync(members_.base + static_cast<std::int64_t>(member) * members_.stride + begin_,
                          inputs_.data() + member * width(), width(), cudaMemcpyHostToDevice, stream),
          "copying inputs to the GPU");
  }
}

void Staging::upload_together(cudaStream_t stream) {
  Buffer& buffer = ring_[next_++ % ring_.size()];
  check(cudaEventSynchronize(buffer.copied.get()), "waiting for the GPU");
  std::byte* const from = buffer.bytes.bytes().data();
  const std::size_t inputs = large_ ? 0 : inputs_.size();
  if (inputs_changed_ && !large_) {
    std::memcpy(from, inputs_.data(), inputs);
    check(cudaMemcpy2DAsync(members_.base + begin_, static_cast<std::size_t>(members_.stride), from, width(), width(),
                            flag_values_.size(), cudaMemcpyHostToDevice, stream),
          "copying inputs to the GPU");
  }
  if (flags_changed_) {
    const std::size_t count = flag_values_.size();
    auto* const flags = reinterpret_cast<std::uint8_t*>(from + inputs);
    std::copy(flag_values_.begin(), flag_values_.end(), flags);
    std::reverse_copy(flag_values_.begin(), flag_values_.end(), flags + count);
    check(cudaMemcpyAsync(flags_.data(), from + inputs, 2 * count, cudaMemcpyHostToDevice, stream),
          "copying to the GPU");
  }
  check(cudaEventRecord(buffer.copied.get(), stream), "recording an event");
}

void Staging::upload(cudaStream_t stream) {
  if (!inputs_changed_ && !flags_changed_) return;
  if (large_ && inputs_changed_) upload_changed(stream);
  if (!large_ || flags_changed_) upload_together(stream);
  inputs_changed_ = flags_changed_ = false;
  changed_.assign(changed_.size(), false);
}

}  // namespace norma::cuda
