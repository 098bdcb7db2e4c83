#include "lab/workshop.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

namespace norma {

Workshop::Workshop(int threads, int at_once)
    : threads_(std::max(1, threads)), busy_(static_cast<std::size_t>(std::clamp(at_once, 1, threads_)), 0) {}

int Workshop::threads_at(std::size_t place) {
  const std::lock_guard lock(mutex_);
  const auto busy = static_cast<int>(std::count(busy_.begin(), busy_.end(), 1));
  const auto before =
      static_cast<int>(std::count(busy_.begin(), busy_.begin() + static_cast<std::ptrdiff_t>(place), 1));
  return threads_ / std::max(1, busy) + (before < threads_ % std::max(1, busy) ? 1 : 0);
}

void Workshop::run(std::size_t count, const std::function<void(std::size_t, const Threads&)>& job,
                   const std::function<void()>& failed) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr problem;
  const auto work = [&](std::size_t place) {
    const auto set_busy = [&](char busy) {
      const std::lock_guard lock(mutex_);
      busy_[place] = busy;
    };
    for (std::size_t index = next++; index < count; index = next++) {
      try {
        job(index, [this, place] { return threads_at(place); });
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!problem) {
          problem = std::current_exception();
          next = count;
          failed();
        }
      }
    }
    set_busy(0);
  };
  const std::size_t places = std::min(count, busy_.size());
  std::fill(busy_.begin(), busy_.begin() + static_cast<std::ptrdiff_t>(places), 1);  // all begin now
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t place = 1; place < places; ++place) others.emplace_back(work, place);
    } catch (const std::system_error&) {  // a limit on threads: those that could be started do it all
      const std::lock_guard lock(mutex_);
      std::fill(busy_.begin() + 1 + std::ssize(others), busy_.end(), 0);
    }
    if (places > 0) work(0);
  }
  if (problem) std::rethrow_exception(problem);
}

}  // namespace norma
