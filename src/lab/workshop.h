// Jobs side by side that share the threads of the machine: each has a team of its own, and the threads of a job that
// has ended go to those still at work. For jobs whose results do not depend on how many threads they have.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace norma {

class Workshop {
 public:
  // At most `at_once` jobs at a time, with `threads` threads between them, at least one each.
  Workshop(int threads, int at_once);

  // How many threads the job at this place may use now; asked as often as it likes.
  using Threads = std::function<int()>;

  // Runs job(0, ...) to job(count - 1, ...) in this order. The first that throws keeps others from beginning;
  // `failed` is called once, so that those under way can be told to end, and what was thrown is thrown again when all
  // have.
  void run(std::size_t count, const std::function<void(std::size_t job, const Threads& threads)>& job,
           const std::function<void()>& failed);

 private:
  int threads_at(std::size_t place);

  int threads_;
  std::mutex mutex_;
  std::vector<char> busy_;  // by place
};

}  // namespace norma
