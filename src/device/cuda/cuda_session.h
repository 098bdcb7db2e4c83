// A session on a GPU: one arena, and the step of all members recorded once and replayed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/cuda/products.h"
#include "device/cuda/read_back.h"
#include "device/cuda/resources.h"
#include "device/cuda/staging.h"
#include "norma/device/cuda/backend.h"
#include "norma/device/session.h"

namespace norma {

class CudaSession final : public Session {
 public:
  CudaSession(std::shared_ptr<const Plan> plan, Options options);
  ~CudaSession() override;

  int threads() const override { return threads_; }
  bool runs_ahead() const override { return true; }
  int earlier_runs() const override { return cuda::ReadBack::kEarlierRuns; }
  std::int64_t memory_bytes() const override { return members_memory_.stride * members_memory_.count; }

  // The seconds that a step of the plan takes by itself; what the tensors hold afterwards is undefined.
  double seconds_of(std::size_t step, int repeats);

 private:
  // The step with probes or without. The first runs go launch by launch, which also loads what they need; then one is
  // recorded, and all others replay that.
  struct Recording {
    int runs = 0;  // launch by launch
    cuda::OwnedExecutable replay;
    int failures = 0;  // other threads may spoil a recording; then the step goes launch by launch once more
  };

  void enqueue(std::span<const int> active, Watching watching) override;
  std::optional<NonFinite> check(int member) override;
  void put(int member, std::int64_t offset, std::span<const std::byte> bytes) override;
  void get(int member, std::int64_t offset, std::span<std::byte> bytes) override;
  void get_earlier(int member, std::int64_t offset, std::span<std::byte> bytes, int runs_ago) override;
  bool copy_on_device(Session& from, std::span<const Copied> tensors) override;

  void make_lanes();
  void make_tables();
  cudaStream_t stream_of(int lane) const;
  void write_constants();
  cuda::Call call_of(std::size_t step, const cuda::Members& members, cudaStream_t stream, Watching watching);
  void launch(std::size_t step, const cuda::Members& members, cudaStream_t stream, Watching watching);
  bool launch_from_either_end(std::size_t step, bool from_the_end, Watching watching);
  void launch_all(Watching watching);
  void record(Recording& recording, Watching watching);
  void wait();

  std::unique_lock<std::mutex>
      ending_;  // the first member, and so the last to go: held while the others are given back
  int threads_;
  cuda::Math math_;
  cuda::OwnedStream stream_;  // of the main lane
  cuda::DeviceBytes arena_;
  cuda::Members members_memory_;
  cuda::Staging staging_;
  cuda::ReadBack read_back_;
  struct Lane {
    cuda::OwnedStream stream;  // empty: the session's own
    std::unique_ptr<cuda::Products> products = std::make_unique<cuda::Products>();
  };
  std::vector<Lane> lanes_;
  std::vector<cuda::OwnedEvent> done_;  // by step; only of those that another lane waits for
  cuda::OwnedEvent begun_;
  std::vector<cuda::OwnedEvent> ended_;  // by lane
  cuda::DeviceBytes tables_;
  std::vector<std::int64_t> table_offsets_;  // by step; -1: none
  cuda::DeviceBytes found_;                  // of checks
  int runs_before_recording_;
  std::array<Recording, 2> recordings_;  // by Watching
};

}  // namespace norma
