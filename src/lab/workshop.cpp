#include "lab/workshop.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

namespace norma {
namespace {

// The caller's thread and those that have joined it.
class Spread {
 public:
  Spread(std::size_t count, const Workshop::Threads& threads, const std::function<void(std::size_t)>& part)
      : count_(count), threads_(threads), part_(part) {}

  void run() {
    work(0);
    helpers_.clear();  // joins them
    if (problem_) std::rethrow_exception(problem_);
  }

 private:
  void work(int number) {
    while (number == 0 || number < threads_()) {
      if (number == 0) hire();
      const std::size_t index = next_++;
      if (index >= count_) return;
      try {
        part_(index);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!problem_) problem_ = std::current_exception();
        next_ = count_;
      }
    }
  }

  // Those who have left are not missed: what they would do, the caller does.
  void hire() {
    const std::size_t begun = next_;
    const std::size_t wanted =
        std::min(static_cast<std::size_t>(std::max(1, threads_())), count_ - std::min(count_, begun));
    try {
      while (helpers_.size() + 1 < wanted)
        helpers_.emplace_back([this, number = static_cast<int>(helpers_.size()) + 1] { work(number); });
    } catch (const std::system_error&) {  // a limit on threads
    }
  }

  const std::size_t count_;
  const Workshop::Threads& threads_;
  const std::function<void(std::size_t)>& part_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr problem_;
  std::vector<std::jthread> helpers_;
};

}  // namespace

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

void Workshop::run_each(std::size_t count, const std::function<void(std::size_t, const Threads&)>& job) {
  const Threads all = [this] { return threads_; };
  if (count == 1 || busy_.size() == 1) {
    for (std::size_t index = 0; index < count; ++index) job(index, all);
    return;
  }
  std::vector<char> failed(count, 0);
  const auto attempt = [&](std::size_t index, const Threads& threads) {
    try {
      job(index, threads);
    } catch (const std::exception&) {
      failed[index] = 1;
    }
  };
  run(count, attempt, [] {});
  for (std::size_t index = 0; index < count; ++index) {
    if (failed[index] != 0) job(index, all);
  }
}

void spread(std::size_t count, const Workshop::Threads& threads, const std::function<void(std::size_t)>& part) {
  if (threads) return Spread(count, threads, part).run();
  for (std::size_t index = 0; index < count; ++index) part(index);
}

}  // namespace norma
