// What a step leaves for the host: the small outputs of all members, gathered into one block at the end of every run
// and copied to the host in one piece, without a wait.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>

#include "device/cuda/resources.h"
#include "norma/device/cuda/kernel.h"
#include "norma/graph/plan.h"

namespace norma::cuda {

class ReadBack {
 public:
  ReadBack(const Plan& plan, const Members& members, cudaStream_t stream);

  void gather(cudaStream_t stream);    // on the device; part of the recorded step
  void download(cudaStream_t stream);  // after it
  // Of the last run, or of one before it; waits for that one. False where this memory is not among the gathered, or has
  // been outdated since the last run.
  bool get(int member, std::int64_t offset, std::span<std::byte> bytes, int runs_ago = 0);
  void outdate() { current_ = false; }
  static constexpr int kEarlierRuns = 3;

 private:
  struct Piece {
    std::int64_t from = 0;  // offset of a member
    std::int64_t bytes = 0;
    std::int64_t to = 0;  // in the member's part of the block
  };

  Members members_;
  std::map<std::int64_t, Piece> pieces_;  // by offset
  std::int64_t width_ = 0;                // bytes of a member
  DeviceBytes table_, block_;
  struct Arrival {
    PinnedBytes host;
    OwnedEvent event;
  };
  std::array<Arrival, kEarlierRuns + 1> arrivals_;  // in turn
  std::int64_t runs_ = 0;
  bool current_ = false;  // the device's memory still holds what the last run left
};

}  // namespace norma::cuda
