#include <cstring>
#include <vector>

#include "device/cuda/read_back.h"

namespace norma::cuda {
namespace {

constexpr std::int64_t kLargestPiece = 64 << 10;  // what is larger is read by itself, when it is asked for

// Sizes are multiples of 4, the smallest element.
__global__ void gather_outputs(Members members, const std::int64_t* pieces, std::int64_t width, std::byte* block) {
  const std::int64_t* const piece = pieces + 3 * static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t from = piece[0], words = piece[1] / 4, to = piece[2];
  const auto member = static_cast<std::int64_t>(blockIdx.y);
  const auto* const source = reinterpret_cast<const std::uint32_t*>(members.base + member * members.stride + from);
  auto* const target = reinterpret_cast<std::uint32_t*>(block + member * width + to);
  for (std::int64_t i = threadIdx.x; i < words; i += blockDim.x) target[i] = source[i];
}

}  // namespace

ReadBack::ReadBack(const Plan& plan, const Members& members, cudaStream_t stream) : members_(members) {
  for (const std::string& name : plan.slot_names(Role::computed)) {
    const Slot& slot = plan.slot(name);
    const std::int64_t bytes = slot.type.bytes();
    if (slot.offset < 0 || bytes > kLargestPiece || bytes % 4 != 0 || pieces_.contains(slot.offset)) continue;
    pieces_[slot.offset] = {slot.offset, bytes, width_};
    width_ += (bytes + 15) / 16 * 16;
  }
  std::vector<std::int64_t> table;
  for (const auto& [offset, piece] : pieces_) table.insert(table.end(), {piece.from, piece.bytes, piece.to});
  table_ = DeviceBytes(table.size() * sizeof(std::int64_t));
  copy_to_device(table_, std::as_bytes(std::span(table)), stream);
  const auto bytes = static_cast<std::size_t>(width_ * members.count);
  block_ = DeviceBytes(bytes);
  // Whole blocks are copied, also what stands between pieces and the part of a member that takes no step.
  if (bytes > 0) check(cudaMemsetAsync(block_.data(), 0, bytes, stream), "clearing the GPU's memory");
  for (Arrival& arrival : arrivals_) arrival = {PinnedBytes(bytes), make_event()};
}

void ReadBack::gather(cudaStream_t stream) {
  if (pieces_.empty()) return;
  const dim3 grid(static_cast<unsigned>(pieces_.size()), static_cast<unsigned>(members_.count));
  gather_outputs<<<grid, 128, 0, stream>>>(members_, reinterpret_cast<const std::int64_t*>(table_.data()), width_,
                                           block_.data());
  check(cudaGetLastError(), "gathering outputs");
}

void ReadBack::download(cudaStream_t stream) {
  if (pieces_.empty()) return;
  Arrival& next = arrivals_[static_cast<std::size_t>(++runs_) % arrivals_.size()];
  check(cudaMemcpyAsync(next.host.bytes().data(), block_.data(), next.host.bytes().size(), cudaMemcpyDeviceToHost,
                        stream),
        "copying outputs from the GPU");
  check(cudaEventRecord(next.event.get(), stream), "recording an event");
  current_ = true;
}

bool ReadBack::get(int member, std::int64_t offset, std::span<std::byte> bytes, int runs_ago) {
  if ((runs_ago == 0 && !current_) || runs_ago > kEarlierRuns || runs_ago >= runs_) return false;
  auto found = pieces_.upper_bound(offset);
  if (found == pieces_.begin()) return false;
  const Piece& piece = (--found)->second;
  const std::int64_t inside = offset - piece.from;
  if (inside + static_cast<std::int64_t>(bytes.size()) > piece.bytes) return false;
  const Arrival& arrival = arrivals_[static_cast<std::size_t>(runs_ - runs_ago) % arrivals_.size()];
  check(cudaEventSynchronize(arrival.event.get()), "waiting for the GPU");
  std::memcpy(bytes.data(), arrival.host.bytes().data() + member * width_ + piece.to + inside, bytes.size());
  return true;
}

}  // namespace norma::cuda
