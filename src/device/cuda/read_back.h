// What a step leaves for the host: the small outputs of all members, gathered into one block at the end of every run
// and copied to the host in one piece, without a wait.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "device/cuda/resources.h"
#include "norma/device/cuda/kernel.h"
#include "norma/graph/plan.h"

namespace norma::cuda {

class ReadBack {
 public:
  ReadBack(const Plan& plan, const Members& members);

  void gather(cudaStream_t stream);    // on the device; part of the recorded step
  void download(cudaStream_t stream);  // after it
  // Of the last run; waits for it. False where this memory is not among the gathered, or has been outdated.
  bool get(int member, std::int64_t offset, std::span<std::byte> bytes);
  void outdate() { current_ = false; }

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
  PinnedBytes host_;
  OwnedEvent arrived_;
  bool current_ = false;
};

}  // namespace norma::cuda
