// A team of threads that run one function side by side (the caller is member 0), with a barrier inside.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace norma {

class Team {
 public:
  explicit Team(int size);  // throws Error where so many threads cannot be started
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }

  // Runs work(worker) on every thread and returns when all have finished. `work` must not throw.
  void run(const std::function<void(int worker)>& work);

  // Called by every worker inside run(): nobody passes before all have arrived.
  void barrier();

 private:
  void worker_loop(int worker);
  void stop();

  int size_;
  std::vector<std::thread> threads_;
  const std::function<void(int)>* work_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> generation_{0};  // counts runs
  alignas(64) std::atomic<int> finished_{0};
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> barrier_phase_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace norma
