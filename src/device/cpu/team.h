// A team of threads that run one function side by side; the caller is worker 0.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "device/cpu/barrier.h"

namespace norma {

class Team {
 public:
  explicit Team(int size);  // throws Error where so many threads cannot be started
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(patience_.size()); }

  // Runs work(worker) on every thread and returns when all have finished. `work` must not throw. It is looked at, not
  // copied: a std::function would allocate in every step.
  template <typename Work>
  void run(const Work& work) {
    run(Job{&work, [](const void* object, int worker) { (*static_cast<const Work*>(object))(worker); }});
  }

  // How long this worker spins where it waits.
  Patience& patience(int worker) { return patience_[static_cast<std::size_t>(worker)].patience; }

 private:
  struct alignas(kApart) PatienceOfOne {
    Patience patience;
  };
  struct Job {
    const void* object = nullptr;
    void (*call)(const void* object, int worker) = nullptr;
    void operator()(int worker) const { call(object, worker); }
  };
  void run(Job job);
  void worker_loop(int worker);
  void stop();

  std::vector<PatienceOfOne> patience_;
  std::vector<std::thread> threads_;
  Job job_;
  LonelyWord generation_;  // counts runs
  LonelyWord finished_;
  std::atomic<bool> stop_{false};
};

}  // namespace norma
